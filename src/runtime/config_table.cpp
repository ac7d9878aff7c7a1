#include "runtime/config_table.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <vector>

#include "base/format.h"
#include "base/json.h"
#include "runtime/driver.h"
#include "runtime/thread_pool.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "cria tuned configurations, version 1";

std::string key_of(std::string_view device, std::string_view kernel, std::string_view dtype,
                   std::string_view shape_class) {
  std::string key;
  for (std::string_view part : {device, kernel, dtype, shape_class})
    key.append(part).push_back('\n');
  return key;
}

Json empty_table() { return {{"format", kFormat}, {"devices", Json::object()}}; }

// Calls visit(key, config) for every entry; throws on anything unexpected.
using Visit = std::function<void(std::string key, std::string config)>;
void visit_configs(const Json& json, const Visit& visit) {
  if (json.at("format") != kFormat) fail("its format is not \"" + std::string(kFormat) + "\"");
  for (const auto& [device, kernels] : json.at("devices").items())
    for (const auto& [kernel, dtypes] : kernels.items())
      for (const auto& [dtype, classes] : dtypes.items())
        for (const auto& [shape_class, entry] : classes.items())
          visit(key_of(device, kernel, dtype, shape_class), entry.at("config").get<std::string>());
}

// Holds the table's lock for writing while it lives.
class FileLock {
 public:
  explicit FileLock(const fs::path& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (file_ < 0) fail_unwritable(path);
    while (::flock(file_, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      ::close(file_);
      fail_unwritable(path);
    }
  }
  ~FileLock() { ::close(file_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  [[noreturn]] static void fail_unwritable(const fs::path& path) {
    fail_f("cannot write {}: {}; name a writable place with --cache FILE or CRIA_CACHE",
           path.string(), std::strerror(errno));
  }
  int file_;
};

// Makes the folder when it is not there.
fs::path lock_path(const fs::path& path) {
  if (path.empty())
    fail(
        "there is no place for the tuned configurations: name a file with --cache FILE or "
        "CRIA_CACHE");
  if (fs::is_directory(path))
    fail_f("cannot write {}: it is a folder; name a file with --cache FILE or CRIA_CACHE",
           path.string());
  std::error_code ignored;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), ignored);
  return path.string() + ".lock";
}

// The table to add to. One that cannot be understood is put aside, not lost.
Json read_for_update(const fs::path& path) {
  if (!fs::exists(path)) return empty_table();
  try {
    Json json = read_json(path);
    visit_configs(json, [](std::string, std::string) {});
    return json;
  } catch (const std::exception&) {
    const fs::path aside = path.string() + ".corrupt";
    std::error_code ignored;
    fs::rename(path, aside, ignored);
    std::cerr << "cria: warning: a new table of tuned configurations replaces " << path.string()
              << ", which could not be read and is now " << aside.string() << '\n';
    return empty_table();
  }
}

}  // namespace

ConfigTable ConfigTable::load(const fs::path& path) {
  ConfigTable table;
  std::error_code ignored;
  if (path.empty() || !fs::exists(path, ignored)) return table;
  try {
    visit_configs(read_json(path), [&](std::string key, std::string config) {
      table.configs_[std::move(key)] = std::move(config);
    });
  } catch (const std::exception& error) {
    std::cerr << "cria: warning: the tuned configurations in " << path.string()
              << " are ignored: " << error.what() << '\n';
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

void check_tuning_cache(const fs::path& path) { const FileLock lock(lock_path(path)); }

void record_tuned(const fs::path& path, const TunedConfig& winner) {
  const FileLock lock(lock_path(path));
  Json json = read_for_update(path);
  json["devices"][winner.device][winner.kernel][name_of(winner.dtype)][winner.shape_class] = {
      {"config", winner.config}, {"time_us", winner.time_us}};
  write_json(path, json);
}

}  // namespace cria
