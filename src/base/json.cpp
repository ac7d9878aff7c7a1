#include "base/json.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/durable_file.h"
#include "base/format.h"
#include "base/input_file.h"

namespace cria {

void refuse_lfs_pointer(std::string_view text, const std::string& where) {
  if (!text.starts_with("version https://git-lfs.github.com/spec/")) return;
  fail_f(
      "{} is a Git LFS pointer instead of the file: run 'git lfs pull' in its repository, or "
      "download the file itself",
      where);
}

namespace {

constexpr size_t kMostText = size_t{1} << 30;  // no text that is read as a whole is longer

// Nesting is limited, and so is each key to once in its object.
template <class J>
class Check {
 public:
  explicit Check(const std::string& where) : where_(where) {}

  bool operator()(int depth, typename J::parse_event_t event, J& parsed) {
    constexpr int kMaxDepth = 32;
    using Event = typename J::parse_event_t;
    if (depth > kMaxDepth) fail_f("{} is nested deeper than {} levels", where_, kMaxDepth);
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key && !keys_.back().insert(parsed.template get<std::string>()).second)
      fail_f("{} has the key \"{}\" twice", where_, parsed.template get<std::string>());
    return true;
  }

 private:
  const std::string& where_;
  std::vector<std::set<std::string>> keys_;  // of the objects around the current place
};

template <class J>
J parse(std::string_view text, const std::string& where, const char* what_to_do) {
  refuse_lfs_pointer(text, where);
  try {
    return J::parse(text, Check<J>(where));
  } catch (const nlohmann::json::parse_error& error) {
    fail_f("{} is not valid JSON at byte {}; {}", where, error.byte, what_to_do);
  } catch (const nlohmann::json::exception&) {  // a number beyond double
    fail_f("{} has a number that is too large; {}", where, what_to_do);
  }
}

}  // namespace

// To its end, whatever its size is said to be: the files of /proc have none.
std::string read_text(const std::filesystem::path& path) {
  const InputFile file(path);
  std::string text(std::min<size_t>(file.size(), kMostText) + 4096, '\0');
  for (size_t size = 0; size <= kMostText;) {
    if (size == text.size()) text.resize(2 * size);
    const ssize_t n = ::pread(file.descriptor(), text.data() + size, text.size() - size,
                              static_cast<off_t>(size));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_f("cannot read {}: {}; check the disk", file.path(), std::strerror(errno));
    size += static_cast<size_t>(n);
    if (n > 0) continue;
    text.resize(size);
    return text;
  }
  fail_f("cannot read {}: it has more than {} bytes; give a smaller file", file.path(), kMostText);
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  DurableFile file(path);
  file.write(text);
  file.commit();
}

Json read_json(const std::filesystem::path& path) {
  return parse<Json>(read_text(path), path.string(), "correct or delete it");
}

void write_json(const std::filesystem::path& path, const Json& json) {
  write_text(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

JsonMap parse_json_map(std::string_view text, const std::string& where) {
  return parse<JsonMap>(text, where, "download or write it again");
}

}  // namespace cria
