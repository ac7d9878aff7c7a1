#include "base/durable_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/format.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kWindow = 16 << 20;              // bytes that go to the disk together
constexpr std::string_view kTemporary = ".cria-";  // between a file's name and what mkstemp chooses

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// What a link leads to, whether it exists or not.
fs::path follow_links(const fs::path& path) {
  constexpr int kMost = 40;  // as the system allows
  fs::path at = path;
  for (int i = 0; i < kMost; ++i) {
    std::error_code no_link;
    const fs::path target = fs::read_symlink(at, no_link);
    if (no_link) return at;
    at = at.parent_path() / target;
  }
  fail_f("cannot write {}: its links lead in a circle; choose another file", path.string());
}

// What this process has open as its output, by this name or another; -1 for other files.
int own_output(const struct stat& file) {
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat own = {};
    if (::fstat(output, &own) == 0 && own.st_dev == file.st_dev && own.st_ino == file.st_ino)
      return output;
  }
  return -1;
}

// Whether no other file may take the place of what has this name.
bool is_written_directly(const fs::path& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return false;
  if (S_ISDIR(info.st_mode)) fail_f("cannot write {}: it is a folder; give a file", path.string());
  return !S_ISREG(info.st_mode) || own_output(info) >= 0;
}

int open_directly(const fs::path& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0 && own_output(info) >= 0) {
    std::fflush(nullptr);  // what was printed comes first
    return ::dup(own_output(info));
  }
  return ::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
}

}  // namespace

DurableFile::DurableFile(const fs::path& path) : path_(path.string()) {
  if (is_written_directly(path)) {
    file_ = open_directly(path);
    if (file_ < 0) fail_f("cannot write {}: {}; give another file", path_, std::strerror(errno));
    return;
  }
  path_ = follow_links(path).string();
  open_temporary();
  // mkstemp makes the file private; give it the permissions any new file would have.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(file_, 0666 & ~mask);
}

// The lock goes with the process. Whoever removes what is abandoned may take it between the two
// calls and remove the file; then it is made again.
void DurableFile::open_temporary() {
  for (;;) {
    temporary_ = path_ + std::string(kTemporary) + "XXXXXX";
    file_ = ::mkstemp(temporary_.data());
    if (file_ < 0) {
      temporary_.clear();
      fail_f("cannot write {}: {}; choose a folder that exists and is writable", path_,
             std::strerror(errno));
    }
    struct stat info = {};
    const bool locked = ::flock(file_, LOCK_EX) == 0;
    if (!locked || ::fstat(file_, &info) != 0 || info.st_nlink > 0) return;
    ::close(file_);
  }
}

void DurableFile::remove_if_abandoned(const fs::path& path) {
  const std::string name = path.filename().string();
  constexpr size_t kRandom = 6;
  const size_t at = name.rfind(kTemporary);
  if (at == std::string::npos || name.size() - at != kTemporary.size() + kRandom) return;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return;
  struct stat info = {};
  if (::fstat(file, &info) == 0 && S_ISREG(info.st_mode) && ::flock(file, LOCK_EX | LOCK_NB) == 0)
    ::unlink(path.c_str());
  ::close(file);
}

DurableFile::~DurableFile() { discard(); }

void DurableFile::discard() {
  if (file_ >= 0) ::close(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  file_ = -1;
  temporary_.clear();
}

void DurableFile::give_up(const char* what_to_do) {
  const int error = errno;
  discard();
  fail_f("cannot write {}: {}; {}", path_, std::strerror(error), what_to_do);
}

void DurableFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_, bytes.data(), std::min(bytes.size(), size_t{kWindow}));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) give_up("free space or choose another place");
    bytes.remove_prefix(static_cast<size_t>(n));
    written_ += n;
    if (!temporary_.empty() && written_ - sent_ >= kWindow) send();
  }
}

// NOTE: the system holds up who leaves much to the sync at the end (balance_dirty_pages), and keeps what
// was written in memory that others could use. On ext4 2.8 GB take 3.0 to 4.5 s as they come, 1.0 to 1.1
// in windows, of which the disk has two and memory no more.
void DurableFile::send() {
  const auto sync = [&](int64_t begin, int64_t end, unsigned how) {
    if (::sync_file_range(file_, begin, end - begin, how) == 0) return;
    // What the disk has told here, it does not tell again in commit(), which does the rest.
    if (errno == EIO || errno == ENOSPC || errno == EDQUOT)
      give_up("free space or choose another place");
  };
  sync(sent_, written_, SYNC_FILE_RANGE_WRITE);
  const int64_t before = sent_ - kWindow;  // not those that the disk was last given
  if (before > done_) {
    sync(done_, before,
         SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    ::posix_fadvise(file_, done_, before - done_, POSIX_FADV_DONTNEED);
    done_ = before;
  }
  sent_ = written_;
}

void DurableFile::commit() {
  const bool replaces = !temporary_.empty();
  if (replaces && ::fsync(file_) != 0) give_up("free space or choose another place");
  const int closed = ::close(file_);
  file_ = -1;
  if (closed != 0) give_up("free space or choose another place");
  if (!replaces) return;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    give_up("choose a path that can be written");
  temporary_.clear();
  sync_folder(folder_of(path_));
}

void check_writable(const fs::path& path) {
  if (!is_written_directly(path)) {
    DurableFile unused(path);
  } else if (::access(path.c_str(), W_OK) != 0) {  // opening a pipe would wait for its reader
    fail_f("cannot write {}: {}; give another file", path.string(), std::strerror(errno));
  }
}

void sync_folder(const fs::path& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) fail_f("cannot open the folder {}: {}", folder.string(), std::strerror(errno));
  // Some file systems have no sync of folders and say EINVAL; their renames are in order anyway.
  const bool ok = ::fsync(file) == 0 || errno == EINVAL;
  const int error = errno;
  ::close(file);
  if (!ok) fail_f("cannot sync the folder {}: {}", folder.string(), std::strerror(error));
}

void rename_durably(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    fail_f("cannot rename {} to {}: {}; check that nothing is in the way", from.string(),
           to.string(), std::strerror(errno));
  }
  sync_folder(folder_of(to));
}

}  // namespace cria
