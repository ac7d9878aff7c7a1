#include "plans/plan.h"

#include <gtest/gtest.h>

#include "runtime/on_device.h"

namespace cria::test {
namespace {

TEST(Plan, StepsThat32BitsCannotCountAreRefused) {
  const ModelConfig debug = find_preset("debug").model;
  for (const std::string& plan : plan_names()) {
    EXPECT_NO_THROW(check_step_size(plan, debug, 2, 32));
    expect_error([&] { check_step_size(plan, debug, 1 << 16, 1 << 16); },
                 "65536 sequences of 65536 tokens with 4 heads");
  }
  ModelConfig wide = debug;
  wide.dim = 1 << 16;
  EXPECT_NO_THROW(check_step_size("flash", wide, 1 << 5, 1 << 10));
  expect_error([&] { check_step_size("baseline", wide, 1 << 5, 1 << 10); },
               "of width 65536 are more than plan baseline");
}

TEST(Plan, HeadsTooWideForFlashAreRefused) {
  ModelConfig model = find_preset("debug").model;
  model.head_dim = 256;
  EXPECT_NO_THROW(check_step_size("flash", model, 2, 32));
  model.head_dim = 258;
  expect_error([&] { check_step_size("flash", model, 2, 32); }, "heads of at most 256 columns");
  for (const std::string plan : {"baseline", "fused"})
    EXPECT_NO_THROW(check_step_size(plan, model, 2, 32));
}

TEST(Plan, HasAVersion) {
  EXPECT_EQ(find_plan("v1"), "baseline");
  EXPECT_EQ(find_plan("v2"), "fused");
  EXPECT_EQ(find_plan("v3"), "flash");
  for (const std::string& plan : plan_names()) EXPECT_EQ(find_plan(plan), plan);
  expect_error([] { find_plan("v0"); }, "choose one of baseline, fused, flash");
  expect_error([] { find_plan(""); }, "no plan called ''");
}

TEST(Plan, ModelsTheOptimizerCannotCountAreRefused) {
  ModelConfig model = find_preset("llama-1b").model;
  EXPECT_NO_THROW(check_step_size("flash", model, 1, 1024));
  model.layers = 32;  // 2.2 billion weights
  expect_error([&] { check_step_size("flash", model, 1, 1024); }, "cannot be trained");
}

}  // namespace
}  // namespace cria::test
