#include "runtime/cpu/cores.h"

#include <malloc.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

namespace cria {
namespace {

const char* const kControlGroups = "/sys/fs/cgroup";
const char* const kCores = "/sys/devices/system/cpu";

// The cores that this process may be scheduled on.
std::vector<int> cores_by_affinity() {
  std::vector<int> cores;
  // The mask of a large machine may not fit into the default cpu_set_t: grow until it does.
  for (int most = 1024; most <= 1 << 16; most *= 2) {
    size_t bytes = CPU_ALLOC_SIZE(most);
    std::vector<unsigned long> mask(bytes / sizeof(unsigned long) + 1, 0);
    auto* set = reinterpret_cast<cpu_set_t*>(mask.data());
    if (sched_getaffinity(0, bytes, set) != 0) continue;
    for (int core = 0; core < most; ++core)
      if (CPU_ISSET_S(core, bytes, set)) cores.push_back(core);
    return cores;
  }
  for (unsigned core = 0; core < std::thread::hardware_concurrency(); ++core)
    cores.push_back(static_cast<int>(core));
  return cores;
}

// This process's group in version 2 of control groups: the line "0::/path" of /proc/self/cgroup.
std::string control_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return "";
}

// The folders of this process's group and of all groups above it.
// In a container the path is often not visible, but the root of the tree is the container's group.
template <class F>
void for_each_group(F&& f) {
  std::string group = control_group();
  while (true) {
    f(kControlGroups + group);
    if (group.empty()) return;
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

// The first two words of a control file, from each of them that has it.
template <class F>
void for_each_limit(const std::string& file, F&& f) {
  for_each_group([&](const std::string& folder) {
    std::ifstream in(folder + "/" + file);
    std::string first, second;
    if (in >> first) {
      in >> second;
      f(first, second);
    }
  });
}

// The number after `key` in a file of the system with a key and its value in each line; 0 if there is none.
size_t value_of(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    size_t value = 0;
    if (words >> word >> value && word == key) return value;
  }
  return 0;
}

// What a group that has a limit has left of it; files that it has read can be dropped.
size_t left_in_group(const std::string& folder) {
  size_t limit = 0, used = 0;
  if (!(std::ifstream(folder + "/memory.max") >> limit)) return SIZE_MAX;  // "max": none
  std::ifstream(folder + "/memory.current") >> used;
  const size_t files = value_of(folder + "/memory.stat", "inactive_file");
  return limit - std::min(limit, used - std::min(used, files));
}

double quota_cores() {
  double cores = INFINITY;
  auto lower = [&](double quota, double period) {
    if (quota > 0 && period > 0) cores = std::min(cores, quota / period);
  };
  for_each_limit("cpu.max", [&](const std::string& quota, const std::string& period) {
    lower(std::atof(quota.c_str()), std::atof(period.c_str()));  // "max" reads as 0: no limit
  });
  std::ifstream quota_v1(kControlGroups + std::string("/cpu/cpu.cfs_quota_us"));
  std::ifstream period_v1(kControlGroups + std::string("/cpu/cpu.cfs_period_us"));
  double quota = 0, period = 0;
  if (quota_v1 >> quota && period_v1 >> period) lower(quota, period);
  return cores;
}

// The value of the first line "key : value" of /proc/cpuinfo.
std::string cpuinfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    size_t colon = line.find(": ");
    if (colon != std::string::npos && line.starts_with(key)) return line.substr(colon + 2);
  }
  return "";
}

std::string word_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// "32768K" as the kernel writes it.
size_t parse_bytes(const std::string& text) {
  char* end = nullptr;
  const size_t number = std::strtoull(text.c_str(), &end, 10);
  switch (*end) {
    case 'K':
      return number << 10;
    case 'M':
      return number << 20;
    case 'G':
      return number << 30;
    default:
      return number;
  }
}

size_t by_sysconf(int name) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

}  // namespace

int available_cores() {
  double cores = std::min<double>(double(cores_by_affinity().size()), std::ceil(quota_cores()));
  return std::max(1, static_cast<int>(cores));
}

std::string cpu_name() {
  std::string name = cpuinfo("model name");
  utsname system{};
  if (name.empty() && uname(&system) == 0) name = system.machine;
  return name;
}

std::string instruction_set() {
#if defined(__AVX512F__)
  return "AVX-512";
#elif defined(__AVX2__)
  return "AVX2";
#elif defined(__x86_64__)
  // The portable build, whose kernels are chosen at run time.
  return __builtin_cpu_supports("avx512vl") ? "AVX-512, portable" : "AVX2, portable";
#elif defined(__aarch64__)
  return "NEON";
#else
  return "";
#endif
}

size_t memory_bytes() {
  size_t bytes = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  for_each_limit("memory.max", [&](const std::string& limit, const std::string&) {
    if (limit != "max") bytes = std::min<size_t>(bytes, std::strtoull(limit.c_str(), nullptr, 10));
  });
  return bytes;
}

size_t available_memory_bytes() {
  size_t bytes = value_of("/proc/meminfo", "MemAvailable:") << 10;
  if (bytes == 0) bytes = memory_bytes();
  for_each_group(
      [&](const std::string& folder) { bytes = std::min(bytes, left_in_group(folder)); });
  return bytes;
}

size_t resident_bytes() { return value_of("/proc/self/status", "VmRSS:") << 10; }
size_t peak_resident_bytes() { return value_of("/proc/self/status", "VmHWM:") << 10; }

void forget_peak_resident_bytes() {
  // Memory that was given back is resident until the allocator returns it.
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // see proc(5)
}

size_t cache_bytes(const std::filesystem::path& folder, std::span<const int> cores, int level) {
  // Instances of the highest level so far, by the cores that share each.
  std::map<std::string, size_t> instances;
  int highest = 0;
  for (const int core : cores) {
    const auto caches = folder / ("cpu" + std::to_string(core)) / "cache";
    for (int i = 0;; ++i) {
      const auto cache = caches / ("index" + std::to_string(i));
      const std::string type = word_of(cache / "type");
      if (type.empty()) break;
      const int its_level = std::atoi(word_of(cache / "level").c_str());
      const size_t bytes = parse_bytes(word_of(cache / "size"));
      if (type == "Instruction" || bytes == 0 || its_level < highest) continue;
      if (level != 0 && its_level != level) continue;
      if (its_level > highest) instances.clear();
      highest = its_level;
      instances[word_of(cache / "shared_cpu_list")] = bytes;
    }
  }
  size_t sum = 0;
  for (const auto& [sharing, bytes] : instances) sum += bytes;
  return sum;
}

size_t l2_cache_bytes() {
  const int first = cores_by_affinity().at(0);
  const size_t bytes = cache_bytes(kCores, {&first, 1}, 2);
  return bytes > 0 ? bytes : by_sysconf(_SC_LEVEL2_CACHE_SIZE);
}

size_t last_level_cache_bytes() {
  const size_t bytes = cache_bytes(kCores, cores_by_affinity(), 0);
  if (bytes > 0) return bytes;
  return std::max(by_sysconf(_SC_LEVEL3_CACHE_SIZE), by_sysconf(_SC_LEVEL2_CACHE_SIZE));
}

double cpu_clock_mhz() { return std::atof(cpuinfo("cpu MHz").c_str()); }

}  // namespace cria
