#include "runtime/config_table.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <vector>

#include "base/file_lock.h"
#include "base/format.h"
#include "base/input_file.h"
#include "base/json.h"
#include "base/json_fields.h"
#include "runtime/driver.h"
#include "runtime/thread_pool.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormatName = "\"cria tuned configurations";
constexpr const char* kFormat = "cria tuned configurations, version 1";

std::string key_of(std::string_view device, std::string_view kernel, std::string_view dtype,
                   std::string_view shape_class) {
  std::string key;
  for (std::string_view part : {device, kernel, dtype, shape_class})
    key.append(part).push_back('\n');
  return key;
}

Json empty_table() { return {{"format", kFormat}, {"devices", Json::object()}}; }

// Calls visit(key, config) for every entry; an Error for anything unexpected.
using Visit = std::function<void(std::string key, std::string config)>;
using Fields = JsonFields<Json>;

void visit_level(const Fields& fields, const Json& json, int levels, const std::string& key,
                 const Visit& visit) {
  for (const auto& [name, value] : json.items()) {
    const Fields child = fields.child(name);
    const std::string longer = key + name + '\n';
    if (levels > 1)
      visit_level(child, value, levels - 1, longer, visit);
    else
      visit(longer, child.text("config"));
  }
}

void visit_configs(const Json& json, const fs::path& path, const Visit& visit) {
  const Fields table(json, path.string());
  if (table.text("format") != kFormat)
    fail_f("{}: its format is not \"{}\"", path.string(), kFormat);
  const Fields devices = table.child("devices");
  visit_level(devices, json["devices"], 4, "", visit);  // device, kernel, type, class
}

constexpr const char* kElsewhere = "name another file with --cache FILE or CRIA_CACHE";

// An Error unless a table may be written there: where there is nothing yet, or an empty file, or
// one that begins like a table.
void check_place(const fs::path& path) {
  if (path.empty()) fail_f("there is no place for the tuned configurations: {}", kElsewhere);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return;
  if (status.type() == fs::file_type::none)
    fail_f("cannot look at {}: {}; {}", path.string(), error.message(), kElsewhere);
  if (!fs::is_regular_file(status))
    fail_f("{} cannot hold tuned configurations, because it is {}; {}", path.string(),
           fs::is_directory(status) ? "a folder" : "a device or a pipe", kElsewhere);
  const InputFile file(path);
  std::string head(std::min<uint64_t>(file.size(), 200), '\0');
  file.read(0, head);
  const bool like_a_table =
      head.empty() || (head[0] == '{' && head.find(kFormatName) != std::string::npos);
  if (!like_a_table)
    fail_f("{} is something else than a table of tuned configurations, and stays; {}",
           path.string(), kElsewhere);
}

// The lock for writing the table at this place, once it may be written there.
FileLock lock_place(const fs::path& path) {
  check_place(path);
  std::error_code ignored;  // what cannot be made, the lock's file says
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), ignored);
  return {path.string() + ".lock", kElsewhere};
}

// A table that is damaged gets a second name, and the one that replaces it takes the first.
void keep_aside(const fs::path& path) {
  const fs::path file = fs::canonical(path);
  std::error_code error;
  for (int i = 1; i < 100; ++i) {
    const fs::path aside = file.string() + (i == 1 ? ".corrupt" : fmt::format(".corrupt-{}", i));
    fs::create_hard_link(file, aside, error);
    if (error == std::errc::file_exists) continue;
    if (error) break;
    std::cerr << "cria: warning: a new table of tuned configurations replaces " << path.string()
              << ", which could not be read and is now " << aside.string() << '\n';
    return;
  }
  fail_f("{} is damaged, and cannot be kept under another name: {}; remove it", path.string(),
         error.message());
}

// The table to add to. One that cannot be understood is put aside, not lost.
Json read_for_update(const fs::path& path) {
  std::error_code ignored;
  if (const auto size = fs::file_size(path, ignored); ignored || size == 0) return empty_table();
  try {
    Json json = read_json(path);
    visit_configs(json, path, [](std::string, std::string) {});
    return json;
  } catch (const Error&) {
    keep_aside(path);
    return empty_table();
  }
}

}  // namespace

ConfigTable ConfigTable::load(const fs::path& path) {
  ConfigTable table;
  std::error_code ignored;
  if (path.empty() || !fs::exists(path, ignored)) return table;
  if (fs::is_regular_file(path, ignored) && fs::file_size(path, ignored) == 0) return table;
  try {
    visit_configs(read_json(path), path, [&](std::string key, std::string config) {
      table.configs_[std::move(key)] = std::move(config);
    });
  } catch (const Error& error) {
    std::cerr << "cria: warning: tuned configurations are ignored: " << error.what() << '\n';
    table.configs_.clear();
  }
  return table;
}

const std::string* ConfigTable::find(std::string_view device, std::string_view kernel, DType dtype,
                                     std::string_view shape_class) const {
  if (empty()) return nullptr;
  const auto found = configs_.find(key_of(device, kernel, name_of(dtype), shape_class));
  return found == configs_.end() ? nullptr : &found->second;
}

fs::path tuning_cache_path() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value ? value : "";
  };
  if (const std::string file = variable("CRIA_CACHE"); !file.empty()) return file;
  if (const std::string folder = variable("XDG_CACHE_HOME"); !folder.empty())
    return fs::path(folder) / "cria" / "tuned.json";
  if (const std::string home = variable("HOME"); !home.empty())
    return fs::path(home) / ".cache" / "cria" / "tuned.json";
  return {};
}

const std::string& device_key(Device device) {
  static const std::string cpu =
      fmt::format("{}, {} workers", describe(kCpu).name, ThreadPool::default_workers());
  static const std::vector<std::string> cuda = [] {
    std::vector<std::string> names;
    for (int i = 0; i < cuda_driver().device_count(); ++i)
      names.push_back(describe(Device{Backend::cuda, i}).name);
    return names;
  }();
  return device.backend == Backend::cpu ? cpu : cuda.at(device.index);
}

const std::string* tuned_config(Device device, const Kernel& kernel,
                                const std::string& shape_class) {
  static const ConfigTable table = ConfigTable::load(tuning_cache_path());
  if (table.empty()) return nullptr;
  return table.find(device_key(device), kernel.name, kernel.dtype, shape_class);
}

void check_tuning_cache(const fs::path& path) { const FileLock lock = lock_place(path); }

void record_tuned(const fs::path& path, const TunedConfig& winner) {
  const FileLock lock = lock_place(path);
  Json json = read_for_update(path);
  json["devices"][winner.device][winner.kernel][name_of(winner.dtype)][winner.shape_class] = {
      {"config", winner.config}, {"time_us", winner.time_us}};
  write_json(path, json);
}

}  // namespace cria
