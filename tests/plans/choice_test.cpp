// What plan flash runs by kernels of cria's own.
#include "plans/choice.h"

#include <gtest/gtest.h>

namespace cria::test {
namespace {

constexpr Chooser kH200{Backend::cuda, 132, DType::bf16, 64};
constexpr Stage kStages[] = {Stage::qkv,       Stage::gate_up,   Stage::linear,
                             Stage::linear_dx, Stage::linear_dw, Stage::weight_gradients};

TEST(Choice, OnACpuAndInFp32TheLibraryMultiplies) {
  const Chooser cpu{Backend::cpu, 132, DType::bf16, 64}, f32{Backend::cuda, 132, DType::f32, 64};
  for (const Stage stage : kStages) {
    EXPECT_FALSE(cpu.choose(stage, {1024, 1024, 512}).own) << name_of(stage);
    EXPECT_FALSE(f32.choose(stage, {1024, 1024, 512}).own) << name_of(stage);
    EXPECT_TRUE(kH200.choose(stage, {1024, 1024, 512}).own) << name_of(stage);
  }
}

TEST(Choice, LargeProductsAreTheLibrarysButNotGateAndUp) {
  for (const Stage stage : kStages) {
    const bool fused = stage == Stage::qkv || stage == Stage::gate_up;
    EXPECT_EQ(kH200.choose(stage, {8192, 4096, 1024}).own, fused) << name_of(stage);
  }
}

// The sizes at which own kernels were slower than the library when both were measured.
TEST(Choice, WhereOwnKernelsWereSlowerTheLibraryMultiplies) {
  const struct {
    Stage stage;
    StageSizes sizes;
  } cases[] = {{Stage::gate_up, {6264, 7624, 3416}},  {Stage::linear, {4096, 1024, 280}},
               {Stage::linear, {4096, 176, 1024}},    {Stage::linear_dx, {16384, 176, 1024}},
               {Stage::linear_dw, {280, 280, 8192}},  {Stage::linear_dw, {1024, 280, 8192}},
               {Stage::linear_dw, {4528, 280, 2296}}, {Stage::linear, {2296, 4528, 280}}};
  for (const auto& c : cases) {
    const Choice choice = kH200.choose(c.stage, c.sizes);
    EXPECT_FALSE(choice.own) << name_of(c.stage) << " " << c.sizes.m << " x " << c.sizes.n << " x "
                             << c.sizes.k;
    EXPECT_FALSE(choice.why.empty());
    EXPECT_EQ(choice.sizes, c.sizes);
  }
}

TEST(Choice, HeadsOfOtherWidthsAreNotTurnedInTheirProduct) {
  const Chooser wide{Backend::cuda, 132, DType::bf16, 80};
  EXPECT_FALSE(wide.choose(Stage::qkv, {1024, 1024, 512}).own);
}

}  // namespace
}  // namespace cria::test
