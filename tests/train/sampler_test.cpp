#include "train/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "runtime/on_device.h"

namespace cria::test {
namespace {

const std::vector<float> kLogits = {0, 2, 1, -1, 2};

std::vector<int> counts(const SamplerOptions& options, int draws) {
  TokenSampler sampler(options);
  std::vector<int> out(kLogits.size());
  for (int i = 0; i < draws; ++i) ++out[sampler.sample(kLogits)];
  return out;
}

TEST(TokenSampler, TemperatureZeroTakesTheFirstLikeliest) {
  EXPECT_EQ(counts({.temperature = 0}, 10)[1], 10);
}

TEST(TokenSampler, DrawsAsOftenAsTheProbabilitiesSay) {
  const int draws = 20000;
  for (const float temperature : {1.f, 0.5f}) {
    const auto seen = counts({.temperature = temperature, .seed = 3}, draws);
    double total = 0;
    for (const float x : kLogits) total += std::exp(x / temperature);
    for (size_t i = 0; i < kLogits.size(); ++i) {
      const double p = std::exp(kLogits[i] / temperature) / total;
      EXPECT_NEAR(seen[i], draws * p, 5 * std::sqrt(draws * p * (1 - p))) << i;  // five deviations
    }
  }
}

TEST(TokenSampler, TopKAndTopPCutTheTail) {
  const auto top2 = counts({.temperature = 1, .top_k = 2, .seed = 1}, 1000);
  EXPECT_EQ(top2[1] + top2[4], 1000);
  EXPECT_GT(top2[1], 300);
  EXPECT_GT(top2[4], 300);
  // The two likeliest have 0.75 together: a third is needed for 0.8.
  const auto top_p = counts({.temperature = 1, .top_p = 0.8f, .seed = 1}, 1000);
  EXPECT_EQ(top_p[1] + top_p[4] + top_p[2], 1000);
  EXPECT_GT(top_p[2], 50);
  EXPECT_EQ(counts({.temperature = 1, .top_p = 1e-6f}, 100)[1], 100);
}

TEST(TokenSampler, SameSeedSameTokens) {
  TokenSampler a({.seed = 5}), b({.seed = 5}), c({.seed = 6});
  std::vector<int> x, y, z;
  for (int i = 0; i < 50; ++i)
    x.push_back(a.sample(kLogits)), y.push_back(b.sample(kLogits)), z.push_back(c.sample(kLogits));
  EXPECT_EQ(x, y);
  EXPECT_NE(x, z);
}

TEST(TokenSampler, RefusesNonsense) {
  expect_error([] { TokenSampler({.temperature = -1}); }, "temperature");
  expect_error([] { TokenSampler({.top_k = -1}); }, "top-k");
  expect_error([] { TokenSampler({.top_p = 0}); }, "top-p");
}

TEST(TokenSampler, RefusesLogitsWithoutAnOrder) {
  const SamplerOptions ways[] = {{.temperature = 0}, {}, {.top_k = 2}, {.top_p = 0.5f}};
  for (const SamplerOptions& options : ways)
    for (const std::vector<float>& logits : {std::vector<float>{1, NAN, 0},
                                             {NAN, 1, 0},
                                             {1, NAN, INFINITY},
                                             {0, INFINITY, 1},
                                             {-INFINITY, -INFINITY}})
      expect_error([&] { TokenSampler(options).sample(logits); }, "not finite");
}

TEST(TokenSampler, NeverDrawsMinusInfinity) {
  TokenSampler sampler({.temperature = 1});
  for (int i = 0; i < 100; ++i) EXPECT_NE(sampler.sample(std::vector<float>{0, -INFINITY, 0}), 1);
}

}  // namespace
}  // namespace cria::test
