#include "base/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace cria {
namespace {

const std::vector<std::string> kOptions = {"batch", "seq",      "steps", "heads", "kv-heads",
                                           "vocab", "head-dim", "seed",  "lr"};

TEST(NearestWord, IsMistypedContinuedOrAPart) {
  const std::pair<const char*, const char*> cases[] = {
      {"batch-size", "batch"}, {"seq-len", "seq"},         {"num-steps", "steps"},
      {"step", "steps"},       {"bacth", "batch"},         {"num-heads", "heads"},
      {"headdim", "head-dim"}, {"n-kv-heads", "kv-heads"}, {"kvheads", "kv-heads"},
      {"vocabulary", "vocab"}, {"seeds", "seed"},          {"dim", "head-dim"}};
  for (const auto& [word, meant] : cases) EXPECT_EQ(nearest_word(word, kOptions), meant) << word;
}

TEST(NearestWord, IsNoneWhereNothingIsAlike) {
  for (const char* word : {"", "x", "b", "rl", "device", "learning-rate", "steppingstones-of-mine"})
    EXPECT_EQ(nearest_word(word, kOptions), "") << word;
  EXPECT_EQ(nearest_word("batch", {}), "");
}

TEST(NearestWord, IsSuggestedBeforeAllThereAre) {
  const std::vector<std::string> known = {"lr", "steps"};
  EXPECT_EQ(suggest("step", known), "; did you mean steps? Choose one of lr, steps");
  EXPECT_EQ(suggest("other", known), "; choose one of lr, steps");
}

}  // namespace
}  // namespace cria
