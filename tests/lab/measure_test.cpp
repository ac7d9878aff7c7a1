#include "lab/measure.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/device.h"

namespace cria {
namespace {

Contender sleeper(const char* name, int us) {
  return {name, [us](Stream&, int) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }};
}

TEST(Measure, QuantilesInterpolate) {
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3, 4}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({1, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(quantile({1, 2}, 1), 2);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.9), 7);
  EXPECT_THROW(quantile({}, 0.5), Error);
}

TEST(Measure, RatiosArePairedByRound) {
  // The machine slows down threefold from round to round; the ratio does not change.
  const Timing a{{1, 3, 9}}, b{{2, 6, 18}};
  const Ratio ratio = speed_ratio(a, b);
  EXPECT_DOUBLE_EQ(ratio.median, 2);
  EXPECT_DOUBLE_EQ(ratio.p10, 2);
  EXPECT_DOUBLE_EQ(ratio.p90, 2);
}

TEST(Measure, TellsFastFromSlow) {
  Stream stream(kCpu);
  MeasureOptions options{.budget_s = 0.1, .min_rounds = 3, .sample_us = 1000};
  const std::vector<Timing> timings =
      measure(stream, {sleeper("fast", 200), sleeper("slow", 2000)}, options);
  ASSERT_EQ(timings.size(), 2u);
  EXPECT_GE(timings[0].median_us(), 200);
  EXPECT_GE(timings[1].median_us(), 2000);
  EXPECT_GT(speed_ratio(timings[0], timings[1]).median, 1.5);
  EXPECT_EQ(timings[0].samples_us.size(), timings[1].samples_us.size());
}

TEST(Measure, TurnsVisitEverySetOfOperands) {
  Stream stream(kCpu);
  std::vector<int> seen(5);
  const Contender contender{"", [&](Stream&, int turn) { ++seen[turn % 5]; }};
  measure(stream, {contender},
          {.budget_s = 0, .min_rounds = 1, .max_rounds = 1, .sample_us = 0, .sets = 5});
  for (int count : seen) EXPECT_GT(count, 0);
}

TEST(Measure, TakesTurnsInAnOrderThatChanges) {
  Stream stream(kCpu);
  std::string order;
  const auto letter = [&](char c) {
    return Contender{"", [&order, c](Stream&, int) { order += c; }};
  };
  measure(stream, {letter('a'), letter('b'), letter('c')},
          {.budget_s = 0, .min_rounds = 3, .max_rounds = 3, .sample_us = 0});
  // Twice each to set up, once to warm up, then three rounds.
  ASSERT_EQ(order.size(), 3u * (2 + 1 + 3)) << order;
  const std::string rounds = order.substr(9);
  EXPECT_NE(rounds.substr(0, 3), rounds.substr(3, 3));
  EXPECT_NE(rounds.substr(3, 3), rounds.substr(6, 3));
  for (int r = 0; r < 3; ++r)
    for (char c : {'a', 'b', 'c'})
      EXPECT_NE(rounds.substr(3 * r, 3).find(c), std::string::npos) << order;
}

TEST(Measure, StopsWhenAsked) {
  Stream stream(kCpu);
  const std::atomic<bool> stop{true};
  MeasureOptions options;
  options.stop = &stop;
  EXPECT_THROW(measure(stream, {sleeper("", 1)}, options), Interrupted);
}

}  // namespace
}  // namespace cria
