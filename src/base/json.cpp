#include "base/json.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

#include "base/durable_file.h"
#include "base/format.h"

namespace cria {

std::string read_text(const std::filesystem::path& path) {
  std::error_code ignored;  // what cannot be looked at cannot be opened either
  if (std::filesystem::is_directory(path, ignored)) {
    fail_f("cannot read {}: it is a folder; give a file", path.string());
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_f("cannot read {}: {}; check the path", path.string(), std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) fail_f("cannot read {}: {}", path.string(), std::strerror(errno));
  return std::move(text).str();
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  DurableFile file(path);
  file.write(text);
  file.commit();
}

void refuse_lfs_pointer(std::string_view text, const std::string& where) {
  if (!text.starts_with("version https://git-lfs.github.com/spec/")) return;
  fail_f(
      "{} is a Git LFS pointer instead of the file: run 'git lfs pull' in its repository, or "
      "download the file itself",
      where);
}

Json read_json(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  refuse_lfs_pointer(text, path.string());
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    fail_f("{} is not valid JSON at byte {}; correct or delete it", path.string(), error.byte);
  } catch (const nlohmann::json::exception&) {  // a number beyond double
    fail_f("{} has a number that is too large; correct or delete it", path.string());
  }
}

void write_json(const std::filesystem::path& path, const Json& json) {
  write_text(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

JsonMap parse_json_map(std::string_view text, const std::string& where) {
  refuse_lfs_pointer(text, where);
  constexpr int kMaxDepth = 32;
  std::vector<std::set<std::string>> keys;  // of the objects around the current place
  const auto check = [&](int depth, JsonMap::parse_event_t event, JsonMap& parsed) {
    using Event = JsonMap::parse_event_t;
    if (depth > kMaxDepth) fail_f("{} is nested deeper than {} levels", where, kMaxDepth);
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(parsed.get<std::string>()).second)
      fail_f("{} has the key \"{}\" twice", where, parsed.get_ref<const std::string&>());
    return true;
  };
  try {
    return JsonMap::parse(text, check);
  } catch (const nlohmann::json::parse_error& error) {
    fail_f("{} is not valid JSON at byte {}; download or write it again", where, error.byte);
  } catch (const nlohmann::json::exception&) {
    fail_f("{} has a number that is too large", where);
  }
}

}  // namespace cria
