// Plans take turns where they fit together, learn the same, and are told apart no finer than they were
// measured.
#include "lab/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/json.h"
#include "runtime/on_device.h"
#include "train/data.h"

namespace cria::test {
namespace {

class CompareTest : public OnDevice {
 protected:
  CompareOptions options(int steps) const {
    const Preset& preset = find_preset("debug");
    return {.trainer = {.model = preset.model,
                        .device = device(),
                        .batch = preset.batch,
                        .seq = preset.seq},
            .plans = plan_names(),
            .steps = steps};
  }
  Comparison compare(const CompareOptions& o) {
    const GeneratedData data(o.trainer.model.vocab, o.trainer.batch, o.trainer.seq, o.seed);
    return compare_plans(
        o,
        [&](int64_t step, auto x, auto y) { data.fill_batch(uint64_t(step), Split::train, x, y); },
        [this](const std::string& plan, int step, int steps) {
          if (steps > 0) timed_ += plan.substr(0, 2) + " ";
          if (seen_) seen_(plan, step, steps);
        });
  }
  std::string timed_;  // the plans of the timed steps, two letters each
  CompareProgress seen_;
};
INSTANTIATE_TEST_SUITE_P(Backends, CompareTest, every_backend(), backend_name);

void expect_same_losses(const Comparison& comparison) {
  for (const PlanFigures& f : comparison.plans) {
    ASSERT_EQ(f.losses.size(), comparison.plans[0].losses.size()) << f.plan;
    for (size_t i = 0; i < f.losses.size(); ++i)
      EXPECT_NEAR(f.losses[i], comparison.plans[0].losses[i], 1e-4) << f.plan;
  }
}

TEST_P(CompareTest, PlansTakeTurnsInAnOrderThatChanges) {
  const Comparison comparison = compare(options(5));
  EXPECT_TRUE(comparison.in_turn);
  ASSERT_EQ(comparison.plans.size(), 3u);
  expect_same_losses(comparison);
  // A step each in five rounds; then one more of each, launch by launch.
  ASSERT_EQ(timed_.size(), 3u * 3 * (5 + 1)) << timed_;
  for (int round = 0; round < 5; ++round)
    for (const char* plan : {"ba", "fu", "fl"})
      EXPECT_NE(timed_.substr(9 * round, 9).find(plan), std::string::npos) << timed_;
  EXPECT_NE(timed_.substr(0, 9), timed_.substr(9, 9));
  for (const PlanFigures& f : comparison.plans) {
    EXPECT_EQ(f.turns.samples_us.size(), 5u);
    EXPECT_GT(f.step_ms, 0);
    EXPECT_GT(f.speedup.median, 0);
  }
  EXPECT_EQ(comparison.plans[0].speedup.median, 1);
}

TEST_P(CompareTest, WithoutMemoryForAllPlansRunOneAfterAnother) {
  CompareOptions o = options(3);
  o.free_bytes = 1 << 20;
  const Comparison comparison = compare(o);
  EXPECT_FALSE(comparison.in_turn);
  ASSERT_EQ(comparison.plans.size(), 3u);
  expect_same_losses(comparison);
  EXPECT_EQ(timed_, "ba ba ba ba fu fu fu fu fl fl fl fl ");
  EXPECT_NE(to_table(comparison, false).find("one after another"), std::string::npos);
  EXPECT_FALSE(to_json(comparison).at("in_turn").get<bool>());
  o.plans = {"flash"};  // nobody to take turns with
  EXPECT_TRUE(compare(o).in_turn);
}

TEST_P(CompareTest, ARoundedModelTakesItsTurnsBesideThePlans) {
  CompareOptions o = options(5);
  o.plans = {"baseline", "flash"};
  o.trainer.model.ffn = 101, o.trainer.model.vocab = 250;
  o.rounded = true;
  const Comparison comparison = compare(o);
  ASSERT_EQ(comparison.plans.size(), 3u);
  const PlanFigures &flash = comparison.plans[1], &rounded = comparison.plans[2];
  EXPECT_EQ(rounded.plan, "flash rounded");
  EXPECT_EQ(rounded.turns.samples_us.size(), 5u);
  EXPECT_EQ(rounded.record.count(), flash.record.count());  // the same plan
  EXPECT_GT(rounded.record.cost().flops, flash.record.cost().flops);
}

TEST_P(CompareTest, LongerComparisonsHaveTurnsOfSeveralSteps) {
  CompareOptions o = options(52);
  o.plans = {"flash"};
  const Comparison comparison = compare(o);
  const size_t turns = comparison.plans.at(0).turns.samples_us.size();
  EXPECT_GE(turns, 6u);
  EXPECT_LE(turns, 52u);
}

TEST_P(CompareTest, AStopKeepsWholeRounds) {
  CompareOptions o = options(5);
  std::atomic<bool> stop{false};
  o.stop = &stop;
  int steps = 0;
  seen_ = [&](const std::string&, int, int all) {
    if (all > 0 && ++steps == 3 + 2) stop = true;  // in the second round
  };
  const Comparison comparison = compare(o);
  ASSERT_EQ(comparison.plans.size(), 3u);
  expect_same_losses(comparison);
  for (const PlanFigures& f : comparison.plans) {
    EXPECT_EQ(f.turns.samples_us.size(), 1u) << f.plan;
    EXPECT_GT(f.record.block_forward, 0) << f.plan;
  }
  EXPECT_EQ(to_bounds(comparison), "");  // no launch was timed
  EXPECT_NE(to_table(comparison, false).find("±?"), std::string::npos);

  stop = false, steps = 3;
  EXPECT_TRUE(compare(o).plans.empty());  // in the first
}

// One plan's memory does not count as another's, whichever comes first.
TEST_P(CompareTest, EachPlansPeakIsItsOwn) {
  for (const bool together : {true, false}) {
    CompareOptions o = options(1);
    o.trainer.batch = 1, o.trainer.seq = 1024, o.trainer.model.context = 1024;
    o.plans = {"baseline", "flash"};
    if (!together) o.free_bytes = 0;
    const Comparison comparison = compare(o);
    ASSERT_EQ(comparison.plans.size(), 2u);
    constexpr int64_t kSlack = 12 << 20;  // libraries, code, rounding to pages
    for (const PlanFigures& f : comparison.plans) {
      EXPECT_GE(f.peak_bytes, f.memory.total() * 9 / 10) << f.plan;
      EXPECT_LE(f.peak_bytes, f.memory.total() * 11 / 10 + (on_cuda() ? 50 : 1) * kSlack) << f.plan;
    }
    EXPECT_LT(comparison.plans[1].memory.activations * 3, comparison.plans[0].memory.activations);
  }
}

PlanFigures plan_of(const std::string& name, std::vector<double> turns_us) {
  PlanFigures f{.plan = name, .losses = {10.3751}, .step_ms = turns_us[0] * 1e-3, .spread = 0.123};
  f.tokens_per_s = 12345678, f.samples_per_s = 98765;
  f.memory = {.weights = int64_t{12345} << 20};
  f.peak_bytes = int64_t{23456} << 20;
  const auto launch = [&](const char* name, const char* config, Cost cost, int launches,
                          double us) {
    f.record.launches.push_back({.name = name,
                                 .config = config,
                                 .cost = cost,
                                 .launches = launches,
                                 .timed = true,
                                 .time_us = us});
  };
  launch("product", "", {.flops = 3e9, .bytes_read = 12e9}, 3, 600);
  launch("softmax_causal_backward", "block1024_threads256", {.bytes_read = 2e6}, 1, 300);
  launch("rmsnorm", "", {}, 1, 100);
  f.record.block_forward = 14, f.record.block_backward = 26;
  f.turns.samples_us = std::move(turns_us);
  return f;
}

Comparison table_of(std::vector<std::vector<double>> turns_us) {
  Comparison out;
  for (auto& turns : turns_us) out.plans.push_back(plan_of("baseline", std::move(turns)));
  for (PlanFigures& f : out.plans) f.speedup = speed_ratio(f.turns, out.plans[0].turns);
  return out;
}

size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  size_t width = 0;
  for (std::string line; std::getline(lines, line);)
    width = std::max<size_t>(
        width, std::ranges::count_if(line, [](char c) { return (c & 0xc0) != 0x80; }));
  return width;
}

TEST(CompareReport, ARatioWithinItsSpreadIsNone) {
  const std::vector<double> once = {1e6, 1e6, 1e6, 1e6, 1e6};
  const Comparison c = table_of({once,
                                 {1.04e6, 0.99e6, 0.99e6, 0.98e6, 0.97e6},    // to both sides
                                 {0.505e6, 0.5e6, 0.5e6, 0.5e6, 0.495e6},     // twice as fast
                                 {1.25e6, 1.25e6, 1.25e6, 1.25e6, 1.25e6}});  // slower, always
  const std::string table = to_table(c, false);
  EXPECT_NE(table.find(" 1.00x\n"), std::string::npos) << table;
  EXPECT_NE(table.find(" same within 3 %\n"), std::string::npos) << table;
  EXPECT_NE(table.find(" 2.00x ±1 %\n"), std::string::npos) << table;
  EXPECT_NE(table.find(" 0.80x ±0 %\n"), std::string::npos) << table;
}

TEST(CompareReport, MainColumnsFitATerminal) {
  const Comparison c = table_of({{1e6, 1e6, 1e6}, {1.3e6, 0.7e6, 1e6}});
  EXPECT_LE(widest_line(to_table(c, false)), 100u) << to_table(c, false);
  EXPECT_LE(widest_line(to_bounds(c)), 100u) << to_bounds(c);
  EXPECT_EQ(to_table(c, false).find("optimizer"), std::string::npos);
  EXPECT_NE(to_table(c, true).find("optimizer"), std::string::npos);
}

// Six tenths of this step are products; where nearly all is, fusion has little to save.
TEST(CompareReport, WhatBoundsEachIsSaid) {
  Comparison c = table_of({{2e6, 2e6, 2e6}, {1e6, 1e6, 1e6}});
  EXPECT_NE(to_bounds(c).find("60 % library products, 30 % softmax_causal_backward, 10 % rmsnorm"),
            std::string::npos)
      << to_bounds(c);
  EXPECT_NE(to_bounds(c).find("other than products take 40 % of baseline's step, 0.00 of its "
                              "12.00 GB: there fusion pays."),
            std::string::npos)
      << to_bounds(c);
  c.plans[1].speedup = {1.01, 0.99, 1.03};  // no faster
  EXPECT_EQ(to_bounds(c).find("pays"), std::string::npos) << to_bounds(c);
  for (PlanFigures& f : c.plans) f.record.launches[0].time_us = 3600;
  EXPECT_NE(to_bounds(c).find("bound by library products, 90 to 90 % of a step"), std::string::npos)
      << to_bounds(c);
  c.plans.pop_back();  // nothing to compare
  EXPECT_EQ(to_bounds(c).find("bound by"), std::string::npos) << to_bounds(c);
}

TEST(CompareReport, TheTableOfKernelsIsInTheJsonToo) {
  const Comparison c = table_of({{1e6, 1e6, 1e6}});
  const Json kernels = to_json(c).at("plans").at(0).at("kernels");
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0].at("kernel"), "product");
  EXPECT_EQ(kernels[0].at("launches"), 3);
  EXPECT_DOUBLE_EQ(kernels[0].at("share").get<double>(), 0.6);
  EXPECT_DOUBLE_EQ(kernels[0].at("tflop_per_s").get<double>(), 5);
  EXPECT_EQ(kernels[1].at("config"), "block1024_threads256");
}

}  // namespace
}  // namespace cria::test
