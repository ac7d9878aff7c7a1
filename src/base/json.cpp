#include "base/json.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/format.h"

namespace cria {
namespace {

std::string last_error() { return std::strerror(errno); }

void write_all(int file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      fail_f("cannot write {}: {}; free space or choose another place", path, last_error());
    text.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace

std::string read_text(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    fail_f("cannot read {}: it is a folder; give a file", path.string());
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_f("cannot read {}: {}; check the path", path.string(), last_error());
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) fail_f("cannot read {}: {}", path.string(), last_error());
  return std::move(text).str();
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  std::string temporary = path.string() + ".XXXXXX";
  const int file = ::mkstemp(temporary.data());
  if (file < 0) {
    fail_f("cannot write {}: {}; choose a folder that exists and is writable", path.string(),
           last_error());
  }
  try {
    write_all(file, text, path.string());
    // mkstemp makes the file private; give it the permissions any new file would have.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    ::fchmod(file, 0666 & ~mask);
  } catch (...) {
    ::close(file);
    ::unlink(temporary.c_str());
    throw;
  }
  const bool closed = ::close(file) == 0;
  if (!closed || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string reason = last_error();
    ::unlink(temporary.c_str());
    fail_f("cannot write {}: {}; choose a path that can be written", path.string(), reason);
  }
}

Json read_json(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    fail_f("{} is not valid JSON at byte {}; correct or delete it", path.string(), error.byte);
  }
}

void write_json(const std::filesystem::path& path, const Json& json) {
  write_text(path, json.dump(2) + "\n");
}

}  // namespace cria
