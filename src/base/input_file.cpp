#include "base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"

namespace cria {

// Without O_NONBLOCK, opening a pipe would wait for its writer.
InputFile::InputFile(const std::filesystem::path& path)
    : path_(path.string()),
      file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
  if (file_ < 0) fail_f("cannot read {}: {}; check the path", path_, std::strerror(errno));
  struct stat info = {};
  const bool known = ::fstat(file_, &info) == 0;
  if (!known || !S_ISREG(info.st_mode)) {
    ::close(file_);
    fail_f("cannot read {}: it is a {} and not a file; give a file", path_,
           known && S_ISDIR(info.st_mode) ? "folder" : "device or a pipe");
  }
  size_ = static_cast<uint64_t>(info.st_size);
}

InputFile::~InputFile() {
  if (file_ >= 0) ::close(file_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      size_(std::exchange(other.size_, 0)) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(size_, other.size_);
  return *this;
}

void InputFile::read(uint64_t begin, std::span<char> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(file_, out.data(), out.size(), static_cast<off_t>(begin));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_f("cannot read {}: {}; check the disk", path_, std::strerror(errno));
    if (n == 0)
      fail_f("{} was cut short while it was read: put it back as it was and try again", path_);
    begin += static_cast<uint64_t>(n);
    out = out.subspan(static_cast<size_t>(n));
  }
}

}  // namespace cria
