// A file as read-only memory: pages are read when touched, so its size costs no memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace cria {

class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  // Empty for an empty file. Valid as long as this object; a file cut short by someone else while
  // it is mapped ends the process, as with any mapping.
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Has the system fetch these bytes of a mapped file, without waiting for them. Pages that are fetched
// when they are touched come in small portions, one after the other.
void fetch_ahead(std::span<const std::byte> mapped);

}  // namespace cria
