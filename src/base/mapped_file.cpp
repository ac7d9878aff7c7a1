#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"

namespace cria {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail_f("cannot read {}: {}; check the path", path.string(), std::strerror(errno));
  struct stat info = {};
  const bool regular = ::fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  void* data = MAP_FAILED;
  if (regular && info.st_size > 0) {
    data = ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  }
  const int error = errno;
  ::close(file);
  if (!regular) fail_f("cannot read {}: it is not a file; give a file", path.string());
  if (info.st_size == 0) return;
  if (data == MAP_FAILED) fail_f("cannot map {}: {}", path.string(), std::strerror(error));
  data_ = static_cast<const std::byte*>(data);
  size_ = static_cast<size_t>(info.st_size);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace cria
