#include "runtime/cpu/cores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <vector>

namespace cria {
namespace {

namespace fs = std::filesystem;

// A folder like /sys/devices/system/cpu that goes with the test.
class CachesOfCores : public ::testing::Test {
 protected:
  CachesOfCores() {
    std::string name = (fs::temp_directory_path() / "cria-caches-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~CachesOfCores() override { fs::remove_all(folder_); }

  void add(int core, int index, const char* level, const char* type, const char* size,
           const char* sharing) {
    const fs::path cache =
        folder_ / ("cpu" + std::to_string(core)) / "cache" / ("index" + std::to_string(index));
    fs::create_directories(cache);
    std::ofstream(cache / "level") << level << '\n';
    std::ofstream(cache / "type") << type << '\n';
    std::ofstream(cache / "size") << size << '\n';
    std::ofstream(cache / "shared_cpu_list") << sharing << '\n';
  }
  size_t bytes(std::vector<int> cores, int level = 0) { return cache_bytes(folder_, cores, level); }

  fs::path folder_;
};

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;

// Four cores in pairs, each pair with a last level of its own.
TEST_F(CachesOfCores, CountsEachInstanceThatACoreUsesOnce) {
  for (int core = 0; core < 4; ++core) {
    const std::string own = std::to_string(core);
    add(core, 0, "1", "Data", "48K", own.c_str());
    add(core, 1, "1", "Instruction", "32K", own.c_str());
    add(core, 2, "2", "Unified", "1024K", own.c_str());
    add(core, 3, "3", "Unified", "32768K", core < 2 ? "0-1" : "2-3");
  }
  EXPECT_EQ(bytes({0}), 32 * kMiB);
  EXPECT_EQ(bytes({0, 1}), 32 * kMiB);
  EXPECT_EQ(bytes({1, 2}), 64 * kMiB);
  EXPECT_EQ(bytes({0, 1, 2, 3}), 64 * kMiB);
  EXPECT_EQ(bytes({0}, 2), kMiB);
  EXPECT_EQ(bytes({0, 1}, 2), 2 * kMiB);
  EXPECT_EQ(bytes({0}, 1), 48 * kKiB) << "instructions are no operands";
  EXPECT_EQ(bytes({0}, 4), 0u);
  EXPECT_EQ(bytes({7}), 0u);
  EXPECT_EQ(bytes({}), 0u);
}

// Cores of which some have a level more: theirs is the last.
TEST_F(CachesOfCores, TheHighestLevelIsTheLast) {
  add(0, 0, "2", "Unified", "2M", "0");
  add(1, 0, "2", "Unified", "2M", "1");
  add(1, 1, "3", "Unified", "1G", "1");
  EXPECT_EQ(bytes({0}), 2 * kMiB);
  EXPECT_EQ(bytes({0, 1}), 1024 * kMiB);
  EXPECT_EQ(bytes({1, 0}), 1024 * kMiB);
}

TEST_F(CachesOfCores, WhatCannotBeReadIsNoCache) {
  EXPECT_EQ(bytes({0}), 0u);
  add(0, 0, "3", "Unified", "", "0");
  EXPECT_EQ(bytes({0}), 0u);
}

// Of this machine, by another way: one instance of the highest level at least, all at most.
TEST(LastLevelCache, IsWhatTheKernelSays) {
  std::map<int, std::map<std::string, size_t>> levels;
  for (int core = 0; core < 4096; ++core)
    for (int i = 0; i < 8; ++i) {
      const fs::path cache =
          "/sys/devices/system/cpu/cpu" + std::to_string(core) + "/cache/index" + std::to_string(i);
      int level = 0;
      std::string sharing, size;
      std::ifstream(cache / "level") >> level;
      std::ifstream(cache / "shared_cpu_list") >> sharing;
      if (!(std::ifstream(cache / "size") >> size)) break;
      levels[level][sharing] = std::strtoull(size.c_str(), nullptr, 10) * kKiB;
    }
  if (levels.empty()) GTEST_SKIP() << "this machine does not describe its caches";
  size_t least = SIZE_MAX, all = 0;
  for (const auto& [sharing, bytes] : levels.rbegin()->second)
    least = std::min(least, bytes), all += bytes;
  EXPECT_GE(last_level_cache_bytes(), least);
  EXPECT_LE(last_level_cache_bytes(), all);
  EXPECT_GT(l2_cache_bytes(), 0u);
}

}  // namespace
}  // namespace cria
