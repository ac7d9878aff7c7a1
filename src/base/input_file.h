// A file to read. Devices, pipes and folders are refused: what they give may never end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace cria {

class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;

  const std::string& path() const { return path_; }
  int descriptor() const { return file_; }
  uint64_t size() const { return size_; }  // in bytes, when it was opened

  // Bytes begin, begin + 1, ... An Error when they are not there, such as in a file that someone
  // has cut short since. Any number of threads may read.
  void read(uint64_t begin, std::span<char> out) const;

 private:
  std::string path_;
  int file_ = -1;
  uint64_t size_ = 0;
};

}  // namespace cria
