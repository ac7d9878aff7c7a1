// The winners of auto-tuning, kept in a file: which configuration a kernel uses for a class of
// shapes on a device. The file is JSON to be read by people, may be deleted at any time, and is
// safe when several processes write it. Its place: CRIA_CACHE, else XDG_CACHE_HOME/cria/tuned.json,
// else ~/.cache/cria/tuned.json.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "runtime/device.h"
#include "runtime/kernel.h"

namespace cria {

struct TunedConfig {
  std::string device;  // device_key()
  std::string kernel;
  DType dtype = DType::f32;
  std::string shape_class;
  std::string config;
  double time_us = 0;  // measured when it won
};

class ConfigTable {
 public:
  // What the file holds; nothing when it is absent. A file that cannot be understood is ignored
  // with a warning on stderr.
  static ConfigTable load(const std::filesystem::path& path);

  bool empty() const { return configs_.empty(); }
  // Null when nothing was tuned for these.
  const std::string* find(std::string_view device, std::string_view kernel, DType dtype,
                          std::string_view shape_class) const;

 private:
  std::map<std::string, std::string, std::less<>> configs_;
};

// Where the table is; empty when the environment names no place.
std::filesystem::path tuning_cache_path();

// The device as the table knows it: its name, for a CPU with the number of workers.
const std::string& device_key(Device device);

// The configuration tuned for these, from the table as it was when this process first asked; null
// when there is none. Cheap enough for every launch.
const std::string* tuned_config(Device device, const Kernel& kernel,
                                const std::string& shape_class);

// An Error when the file could not be written; asked before long work whose result would be lost.
void check_tuning_cache(const std::filesystem::path& path);

// Adds a winner to the file, replacing an older one. Running processes keep what they have read.
void record_tuned(const std::filesystem::path& path, const TunedConfig& winner);

}  // namespace cria
