// What plan flash runs by kernels of cria's own.
#include "plans/choice.h"

#include <gtest/gtest.h>

namespace cria::test {
namespace {

constexpr Device kGpu{Backend::cuda, 0};

TEST(Choice, OnACpuAndInFp32TheLibraryMultiplies) {
  for (const Stage stage : {Stage::qkv, Stage::gate_up, Stage::product, Stage::weight_gradients}) {
    EXPECT_FALSE(choose(stage, {512, 512, 512}, DType::bf16, kCpu, 64).own) << name_of(stage);
    EXPECT_FALSE(choose(stage, {512, 512, 512}, DType::f32, kGpu, 64).own) << name_of(stage);
    EXPECT_TRUE(choose(stage, {512, 512, 512}, DType::bf16, kGpu, 64).own) << name_of(stage);
  }
}

TEST(Choice, SaysWhy) {
  const Choice small = choose(Stage::product, {512, 512, 512}, DType::bf16, kGpu, 64);
  const Choice large = choose(Stage::product, {8192, 8192, 8192}, DType::bf16, kGpu, 64);
  EXPECT_TRUE(small.own);
  EXPECT_FALSE(large.own);
  EXPECT_NE(small.why, large.why);
  EXPECT_EQ(large.sizes, (StageSizes{8192, 8192, 8192}));
  EXPECT_FALSE(choose(Stage::qkv, {512, 512, 512}, DType::bf16, kGpu, 80).own);
}

}  // namespace
}  // namespace cria::test
