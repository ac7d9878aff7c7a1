#include "base/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/format.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

DurableFile::DurableFile(const fs::path& path)
    : path_(path.string()), temporary_(path_ + ".XXXXXX") {
  file_ = ::mkstemp(temporary_.data());
  if (file_ < 0) {
    fail_f("cannot write {}: {}; choose a folder that exists and is writable", path_,
           std::strerror(errno));
  }
  // mkstemp makes the file private; give it the permissions any new file would have.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(file_, 0666 & ~mask);
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
    const ssize_t n = ::write(file_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) give_up("free space or choose another place");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void DurableFile::commit() {
  if (::fsync(file_) != 0) give_up("free space or choose another place");
  const int closed = ::close(file_);
  file_ = -1;
  if (closed != 0) give_up("free space or choose another place");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    give_up("choose a path that can be written");
  temporary_.clear();
  sync_folder(folder_of(path_));
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
