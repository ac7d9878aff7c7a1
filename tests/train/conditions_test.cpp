#include "train/conditions.h"

#include <gtest/gtest.h>

#include "model/config.h"
#include "runtime/product.h"
#include "runtime/thread_pool.h"
#include "train/data.h"

namespace cria::test {
namespace {

TEST(Conditions, TellWhatTheBitsDependOn) {
  const Preset& preset = find_preset("debug");
  const auto trainer =
      make_trainer({.model = preset.model, .batch = preset.batch, .seq = preset.seq});
  trainer->initialise(1);
  EXPECT_FALSE(conditions_of(*trainer).contains("configurations")) << "nothing has run";

  std::vector<int32_t> tokens(preset.batch * preset.seq), targets(tokens.size());
  const GeneratedData data(preset.model.vocab, preset.batch, preset.seq, 1);
  data.fill_batch(0, Split::train, tokens, targets);
  const HostBatch batch{tokens, targets};
  for (int i = 0; i < 2; ++i) trainer->step({&batch, 1}, 1e-3f);
  const Json conditions = conditions_of(*trainer);
  EXPECT_EQ(conditions.at("device"), describe(kCpu).name);
  EXPECT_EQ(conditions.at("products"), product_library(kCpu));
  EXPECT_EQ(conditions.at("workers"), ThreadPool::shared().workers());
  EXPECT_FALSE(conditions.at("instruction_set").get<std::string>().empty());
  const Json& configurations = conditions.at("configurations");
  for (const char* kernel : {"embedding_forward", "rmsnorm_backward", "attention_forward", "adamw"})
    EXPECT_TRUE(configurations.contains(kernel)) << conditions;
  EXPECT_FALSE(configurations.contains("product"));
  EXPECT_EQ(differences(conditions, conditions), "");
}

TEST(Conditions, DifferencesAreNamed) {
  const Json then = Json::parse(R"({"device": "a CPU", "products": "oneDNN 2.6.3", "workers": 2,
      "instruction_set": "AVX2",
      "configurations": {"silu": ["8x64"], "adamw": ["threads64"], "old": ["x"]}})");
  Json now = then;
  now["workers"] = 3;
  EXPECT_EQ(differences(then, now), "") << "workers change no bits";
  now["products"] = "OpenBLAS 0.3.21";
  EXPECT_EQ(differences(then, now), "products by oneDNN 2.6.3 then, OpenBLAS 0.3.21 now");
  now["configurations"] = {{"silu", {"16x64"}}, {"adamw", {"threads64"}}, {"new", {"y"}}};
  EXPECT_EQ(differences(then, now),
            "products by oneDNN 2.6.3 then, OpenBLAS 0.3.21 now; kernels silu as 8x64 then, as "
            "16x64 now");
  now["device"] = "another", now["instruction_set"] = "AVX-512";
  EXPECT_TRUE(differences(then, now).starts_with(
      "on a CPU then, another now; with AVX2 then, AVX-512 now; products by"));
}

TEST(Conditions, ChoicesBetweenKernelsAndProductsAreNamed) {
  const Json then = Json::parse(
      R"({"choices": {"qkv of 8 x 9 x 10": "cria", "product of 1 x 2 x 3": "the library"}})");
  Json now = then;
  EXPECT_EQ(differences(then, now), "");
  now["choices"]["qkv of 8 x 9 x 10"] = "the library";
  now["choices"]["product of 4 x 5 x 6"] = "cria";  // not made then
  EXPECT_EQ(differences(then, now), "qkv of 8 x 9 x 10 by cria then, by the library now");
  EXPECT_EQ(differences(Json::parse(R"({"choices": [3]})"), now), "");

  const Preset& preset = find_preset("debug");
  const auto trainer =
      make_trainer({.model = preset.model, .batch = preset.batch, .seq = preset.seq});
  trainer->initialise(1);
  const std::vector<int32_t> tokens(preset.batch * preset.seq);
  const HostBatch batch{tokens, tokens};
  trainer->step({&batch, 1}, 1e-3f);
  const Json choices = conditions_of(*trainer).at("choices");
  EXPECT_EQ(choices.at("gate_up of 64 x 160 x 64"), "the library") << choices;
}

// A file may hold anything.
TEST(Conditions, WhatIsNotToldDoesNotDiffer) {
  const Json now = Json::parse(R"({"device": "a CPU", "configurations": {"silu": ["8x64"]}})");
  for (const char* then : {"null", "[]", "3", R"({"device": 3})", R"({"configurations": 3})",
                           R"({"configurations": {"silu": 3}})", R"({"configurations": ["silu"]})"})
    EXPECT_EQ(differences(Json::parse(then), now), "") << then;
}

}  // namespace
}  // namespace cria::test
