#include "runtime/gpu_code.h"

#include <gtest/gtest.h>

namespace cria {
namespace {

TEST(GpuCode, MachineCodeRunsWithinItsMajorVersion) {
  for (int capability : {80, 86, 89}) EXPECT_TRUE(has_gpu_code("80-real", capability));
  for (int capability : {75, 90, 100}) EXPECT_FALSE(has_gpu_code("80-real", capability));
  EXPECT_FALSE(has_gpu_code("86-real", 80));
  EXPECT_TRUE(has_gpu_code("100-real", 103));
  EXPECT_FALSE(has_gpu_code("100-real", 110));
}

TEST(GpuCode, CodeOfOneArchitectureRunsThereAlone) {
  EXPECT_TRUE(has_gpu_code("80-real,90a-real", 90));
  EXPECT_FALSE(has_gpu_code("80-real,90a-real", 100));
  EXPECT_FALSE(has_gpu_code("90a", 100));
}

TEST(GpuCode, PtxRunsOnWhatIsNewer) {
  for (const char* architecture : {"80", "80-virtual"}) {
    EXPECT_TRUE(has_gpu_code(architecture, 120)) << architecture;
    EXPECT_FALSE(has_gpu_code(architecture, 75)) << architecture;
  }
}

TEST(GpuCode, NothingRunsWithoutAnyAndNvccKnowsItsOwnWords) {
  EXPECT_FALSE(has_gpu_code("", 90));
  EXPECT_TRUE(has_gpu_code("native", 90));
}

TEST(GpuCode, WhatCannotBeUsedSaysWhy) {
  EXPECT_EQ(why_unusable("80-real,90a-real", 90), "");
  EXPECT_EQ(why_unusable("native", 75),
            "its compute capability is 7.5, and cria needs 8.0 or newer");
  EXPECT_EQ(why_unusable("80-real,90a-real", 120),
            "its compute capability is 12.0, and this cria was built for 80-real,90a-real: build "
            "it on this machine with 'make'");
}

}  // namespace
}  // namespace cria
