#include "train/schedule.h"

#include <gtest/gtest.h>

namespace cria::test {
namespace {

TEST(Schedule, WarmsUpThenFalls) {
  const Schedule s{.peak = 1, .warmup = 4, .steps = 104, .final_share = 0.1f};
  EXPECT_FLOAT_EQ(s.rate(0), 0.25f);
  EXPECT_FLOAT_EQ(s.rate(3), 1);
  EXPECT_FLOAT_EQ(s.rate(4), 1);
  EXPECT_FLOAT_EQ(s.rate(54), 0.55f);  // half way down
  EXPECT_FLOAT_EQ(s.rate(104), 0.1f);
  EXPECT_FLOAT_EQ(s.rate(1000), 0.1f);
  for (int i = 5; i < 104; ++i) EXPECT_LT(s.rate(i), s.rate(i - 1));
}

TEST(Schedule, WithoutWarmup) {
  EXPECT_FLOAT_EQ((Schedule{.peak = 2, .warmup = 0, .steps = 10}.rate(0)), 2);
}

TEST(Schedule, ShorterThanItsWarmup) {
  const Schedule s{.peak = 2, .warmup = 10, .steps = 5};
  EXPECT_FLOAT_EQ(s.rate(4), 1);
}

}  // namespace
}  // namespace cria::test
