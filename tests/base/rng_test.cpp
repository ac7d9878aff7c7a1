#include "base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace cria {
namespace {

TEST(Rng, SameSeedSameNumbersAnywhere) {
  Rng a(42), b(42);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.bits(), b.bits());
  // Fixed for all platforms and versions: training runs are compared across machines.
  Rng fixed(42);
  EXPECT_EQ(fixed.bits(), 0xc5a57e8172f0a9d2u);
  EXPECT_EQ(fixed.normal(), -0x1.345fdc729ad68p-2);
  EXPECT_EQ(fixed.normal(), 0x1.1523f7580527fp-1);
  uint64_t hash = 0;
  Rng many(43);
  for (int i = 0; i < 100'000; ++i) hash = hash * 31 + std::bit_cast<uint64_t>(many.normal());
  EXPECT_EQ(hash, 0x4587e02e56c38531u);
}

TEST(Rng, SeeksToAnyPosition) {
  Rng rng(7);
  std::vector<double> all;
  for (int i = 0; i < 50; ++i) all.push_back(rng.normal());
  EXPECT_EQ(rng.position(), 50u);
  rng.seek(31);
  EXPECT_EQ(rng.normal(), all[31]);
}

TEST(Rng, SeedsAndStreamsDiffer) {
  EXPECT_NE(Rng(1).bits(), Rng(2).bits());
  EXPECT_NE(Rng(1, 0).bits(), Rng(1, 1).bits());
  EXPECT_NE(Rng(0, 1).bits(), Rng(1, 0).bits());
}

TEST(Rng, UniformFillsTheUnitInterval) {
  Rng rng(3);
  constexpr int kCount = 200'000;
  std::vector<int> buckets(16);
  for (int i = 0; i < kCount; ++i) {
    const double x = rng.uniform();
    ASSERT_GE(x, 0.0);
    ASSERT_LT(x, 1.0);
    ++buckets[static_cast<int>(x * 16)];
  }
  // Binomial, standard deviation 108: 6 of them.
  for (const int n : buckets) EXPECT_NEAR(n, kCount / 16, 650);
}

TEST(Rng, BelowStaysBelow) {
  Rng rng(4);
  std::vector<int> seen(7);
  for (int i = 0; i < 7000; ++i) ++seen.at(rng.below(7));
  for (const int n : seen) EXPECT_NEAR(n, 1000, 180);
  EXPECT_EQ(rng.below(1), 0u);
}

TEST(Rng, NormalHasTheRightMoments) {
  Rng rng(5);
  constexpr int kCount = 1'000'000;
  double m1 = 0, m2 = 0, m4 = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = rng.normal();
    m1 += x;
    m2 += x * x;
    m4 += x * x * x * x;
  }
  EXPECT_NEAR(m1 / kCount, 0.0, 0.005);
  EXPECT_NEAR(m2 / kCount, 1.0, 0.01);
  EXPECT_NEAR(m4 / kCount, 3.0, 0.06);
}

TEST(Rng, QuantileInvertsTheDistribution) {
  for (const double p : {1e-16, 1e-13, 1e-11, 1e-6, 0.01, 0.07, 0.0749, 0.0751, 0.3, 0.5}) {
    const double x = normal_quantile(p);
    EXPECT_NEAR(std::erfc(-x / std::sqrt(2.0)) / 2 / p, 1.0, 1e-13) << p;
  }
  EXPECT_EQ(normal_quantile(0.25), -normal_quantile(0.75));
  EXPECT_EQ(normal_quantile(0.0078125), -normal_quantile(1 - 0.0078125));
}

TEST(Rng, FillsSpans) {
  std::vector<float> a(10'000);
  Rng(6).fill_normal(a, 0.02f);
  double square = 0;
  for (const float x : a) square += double{x} * x;
  EXPECT_NEAR(std::sqrt(square / 10'000), 0.02, 0.001);
  Rng(6).fill_normal({}, 1.0f);
}

uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }

TEST(Rng, FillsAnyPartOfAStreamWithTheSameBits) {
  constexpr size_t kCount = 5000;
  std::vector<float> whole(kCount), parts(kCount);
  Rng(8, 3).fill_normal(whole, 0.7f);
  Rng one(8, 3), cut(9);
  for (const float x : whole) ASSERT_EQ(bits_of(x), bits_of(float(0.7f * one.normal())));
  for (int round = 0; round < 50; ++round) {
    for (size_t begin = 0; begin < kCount;) {  // each part by a generator of its own, last first
      const size_t end = std::min<size_t>(kCount, begin + 1 + cut.below(round < 25 ? 40 : 900));
      Rng part(8, 3);
      part.seek(kCount - end);
      part.fill_normal(std::span(parts).subspan(kCount - end, end - begin), 0.7f);
      EXPECT_EQ(part.position(), kCount - begin);
      begin = end;
    }
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(bits_of(parts[i]), bits_of(whole[i])) << i;
  }
}

// The mixing function of rng.cpp backwards.
uint64_t unmix(uint64_t x) {
  const auto unshift = [](uint64_t y, int by) {  // of y = x ^ (x >> by), x
    uint64_t out = y;
    for (int known = by; known < 64; known += by) out = y ^ (out >> by);
    return out;
  };
  const auto inverse =
      [](uint64_t odd) {  // modulo 2^64: each round doubles the bits that are right
        uint64_t out = odd;
        for (int i = 0; i < 6; ++i) out *= 2 - odd * out;
        return out;
      };
  x = unshift(x, 31) * inverse(0x94d049bb133111ebu);
  return unshift(unshift(x, 27) * inverse(0xbf58476d1ce4e5b9u), 30);
}

// Values so far out that no stream of reasonable length has any, from seeds made for them.
TEST(Rng, FillsTheFarTails) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
  for (const uint64_t bits : {uint64_t{0}, ~uint64_t{0}, uint64_t{1} << 20, uint64_t{1} << 27}) {
    constexpr uint64_t kPlace = 301;
    Rng rng(unmix(unmix(unmix(bits) - (kPlace + 1) * kGolden)) - kGolden);
    rng.seek(kPlace);
    ASSERT_EQ(rng.bits(), bits);
    rng.seek(kPlace);
    const auto want = static_cast<float>(rng.normal());
    EXPECT_GT(std::abs(want), 6) << bits;
    std::vector<float> out(600);
    rng.seek(0);
    rng.fill_normal(out, 1.0f);
    EXPECT_EQ(bits_of(out[kPlace]), bits_of(want)) << bits;
  }
}

}  // namespace
}  // namespace cria
