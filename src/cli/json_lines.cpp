#include "cli/json_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/format.h"
#include "base/json.h"

namespace cria {

JsonLines::~JsonLines() {
  if (file_ >= 0) ::close(file_);
}

void JsonLines::open(bool append) {
  if (path_.empty()) return;
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_APPEND | (append ? 0 : O_TRUNC);
  file_ = ::open(path_.c_str(), flags, 0666);
  if (file_ < 0) fail_f("cannot write {}: {}; give another file", path_, std::strerror(errno));
}

void JsonLines::write(const Json& line) {
  if (file_ < 0 || !lost_.empty()) return;
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const off_t begin = ::lseek(file_, 0, SEEK_END);
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t n = ::write(file_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      lost_ = fmt::format("cannot write {}: {}", path_, std::strerror(errno));
      // No part of a line stays, so that a later run can go on after it. A pipe has its part.
      [[maybe_unused]] const int cut = begin < 0 ? -1 : ::ftruncate(file_, begin);
      return;
    }
    rest.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace cria
