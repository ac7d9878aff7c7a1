#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/format.h"

namespace cria {
namespace {

constexpr size_t kMostDigits = 20;

// The number of a process and a new line, as sign() writes it; empty for anything else.
std::string signature(int file) {
  std::array<char, kMostDigits + 2> text;
  const ssize_t n = ::pread(file, text.data(), text.size(), 0);
  if (n < 2 || n == static_cast<ssize_t>(text.size()) || text[n - 1] != '\n') return "";
  const std::string digits(text.data(), static_cast<size_t>(n) - 1);
  const bool all = std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  return all ? digits : "";
}

enum class Locked { yes, busy, failed };

Locked lock(int file, int how) {
  while (::flock(file, how) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return Locked::busy;
    // Some network file systems have no locks: there the lock keeps nobody out.
    const bool none = errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP;
    return none ? Locked::yes : Locked::failed;
  }
  return Locked::yes;
}

[[noreturn]] void fail_to_lock(const std::filesystem::path& path, const char* what_to_do) {
  fail_f("cannot write {}: {}; {}", path.string(), std::strerror(errno), what_to_do);
}

}  // namespace

// A link is not followed: with folders from elsewhere it could lead anywhere.
int FileLock::open(const std::filesystem::path& path, const char* what_to_do) {
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  const int file = ::open(path.c_str(), flags, 0666);
  if (file < 0) fail_to_lock(path, what_to_do);
  struct stat info = {};
  if (::fstat(file, &info) == 0 && S_ISREG(info.st_mode)) return file;
  ::close(file);
  fail_f("cannot write {}: it is no file; {}", path.string(), what_to_do);
}

FileLock::FileLock(const std::filesystem::path& path, const char* what_to_do)
    : file_(open(path, what_to_do)) {
  if (lock(file_, LOCK_EX) != Locked::yes) {
    const int error = errno;
    ::close(file_);
    errno = error;
    fail_to_lock(path, what_to_do);
  }
  sign();
}

FileLock::~FileLock() {
  if (file_ >= 0) ::close(file_);
}

FileLock::FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

std::optional<FileLock> FileLock::take(const std::filesystem::path& path, const char* what_to_do) {
  FileLock taken(open(path, what_to_do));
  const Locked locked = lock(taken.file_, LOCK_EX | LOCK_NB);
  if (locked == Locked::failed) fail_to_lock(path, what_to_do);
  if (locked == Locked::busy) return std::nullopt;
  taken.sign();
  return taken;
}

std::string FileLock::holder(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return "another process";
  const std::string digits = signature(file);
  ::close(file);
  return digits.empty() ? "another process" : "process " + digits;
}

// A file of this name with anything else in it is someone's, and stays as it is.
void FileLock::sign() const {
  struct stat info = {};
  if (::fstat(file_, &info) != 0 || (info.st_size > 0 && signature(file_).empty())) return;
  const std::string text = fmt::format("{}\n", ::getpid());
  // The lock holds even when the disk is too full for this text, which only names the process.
  if (::ftruncate(file_, 0) != 0 || ::pwrite(file_, text.data(), text.size(), 0) < 0) return;
}

}  // namespace cria
