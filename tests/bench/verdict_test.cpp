#include "bench/verdict.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace cria::claims {
namespace {

Claim vector_add(double target) {
  return {.what = "vector add",
          .problem = "vector_add",
          .dtype = DType::f32,
          .sizes = {{"n", 1000}},
          .target = target};
}

std::vector<Verdict> judged(const std::vector<Claim>& claims) {
  return judge(claims, {.device = kCpu, .seconds = 0});
}

TEST(Verdict, AClaimWithinReachIsMet) {
  const auto verdicts = judged({vector_add(1e-9)});
  EXPECT_TRUE(all_good(verdicts));
  EXPECT_EQ(sum_up(verdicts), "1 of 1 claims met");
  EXPECT_GE(verdicts[0].measured.best(BenchRow::Kind::kernel)->final_timing.samples_us.size(), 21u);
}

TEST(Verdict, AMissedTargetIsNoticed) {
  const auto verdicts = judged({vector_add(1e-9), vector_add(1e9)});
  EXPECT_FALSE(all_good(verdicts));
  EXPECT_EQ(sum_up(verdicts), "1 of 2 claims met");
}

TEST(Verdict, WhatCannotBeMeasuredIsNotMet) {
  Claim claim = vector_add(0);
  claim.sizes = {{"rows", 3}};  // which vector_add does not have
  const auto verdicts = judged({claim});
  EXPECT_FALSE(all_good(verdicts));
  EXPECT_EQ(sum_up(verdicts), "0 of 1 claims met, 1 not measured");
  EXPECT_NE(verdicts[0].config.find("--rows does not apply"), std::string::npos);
}

TEST(Verdict, AWrongResultSpoilsAClaimThatIsMet) {
  auto verdicts = judged({vector_add(1e-9)});
  verdicts[0].measured.rows[0].accuracy.ok = false;
  EXPECT_FALSE(all_good(verdicts));
  EXPECT_EQ(sum_up(verdicts), "1 of 1 claims met, wrong results in 1");
  EXPECT_NE(to_table(verdicts).find("WRONG"), std::string::npos);
}

}  // namespace
}  // namespace cria::claims
