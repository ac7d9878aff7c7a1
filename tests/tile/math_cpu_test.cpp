// The CPU target's own functions against libm in double, over wide ranges and at the edges.
#define CRIA_TARGET_CPU 1
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tile/target.h"

namespace cria::tile {
namespace {

using Function = std::function<float(float)>;
using Reference = std::function<double(double)>;

constexpr float kTiny = std::numeric_limits<float>::min();
constexpr float kInf = std::numeric_limits<float>::infinity();

// Largest relative error over [low, high] in even steps, relative to max(|want|, floor).
double worst(Function f, Reference want, float low, float high, double floor = kTiny,
             int steps = 400000) {
  double worst = 0;
  for (int i = 0; i <= steps; ++i) {
    const float x = low + (high - low) * (static_cast<float>(i) / static_cast<float>(steps));
    const double w = want(x), error = std::abs(f(x) - w) / std::max(std::abs(w), floor);
    if (!(error <= worst)) worst = error;  // NaN stays
    if (std::isnan(worst)) return worst;
  }
  return worst;
}
// The same over magnitudes from 2^low to 2^high.
double worst_over_exponents(Function f, Reference want, float low, float high,
                            double floor = kTiny) {
  return worst([&](float e) { return f(std::exp2(e)); },
               [&](double e) { return want(std::exp2(static_cast<float>(e))); }, low, high, floor);
}

TEST(CpuMath, Exp2) {
  auto f = [](float x) { return exp2(x); };
  auto want = [](double x) { return std::exp2(x); };
  EXPECT_LT(worst(f, want, -125.49f, 127.99f), 2e-7);
  EXPECT_LT(worst(f, want, -1, 1), 2e-7);
  for (int n = -125; n < 128; ++n) EXPECT_EQ(exp2(static_cast<float>(n)), std::ldexp(1.f, n)) << n;
  EXPECT_EQ(exp2(-kInf), 0.f);
  EXPECT_EQ(exp2(-1e30f), 0.f);
  EXPECT_EQ(exp2(-150.f), 0.f);
  EXPECT_EQ(exp2(128.f), kInf);
  EXPECT_EQ(exp2(1e30f), kInf);
  EXPECT_EQ(exp2(kInf), kInf);
  EXPECT_TRUE(std::isnan(exp2(NAN)));
}

TEST(CpuMath, Exp) {
  auto f = [](float x) { return exp(x); };
  auto want = [](double x) { return std::exp(x); };
  EXPECT_LT(worst(f, want, -86.9f, 88.72f), 2e-7);
  EXPECT_LT(worst(f, want, -1, 1), 2e-7);
  EXPECT_EQ(exp(0.f), 1.f);
  EXPECT_EQ(exp(-kInf), 0.f);
  EXPECT_EQ(exp(-1e4f), 0.f);
  EXPECT_EQ(exp(89.f), kInf);
  EXPECT_EQ(exp(kInf), kInf);
  EXPECT_TRUE(std::isnan(exp(NAN)));
}

TEST(CpuMath, Log) {
  auto f = [](float x) { return log(x); };
  auto want = [](double x) { return std::log(x); };
  EXPECT_LT(worst_over_exponents(f, want, -125.9f, 127.9f, 1e-7), 2e-7);
  EXPECT_LT(worst(f, want, 0.5f, 2, 1e-7), 2e-7);
  EXPECT_EQ(log(1.f), 0.f);
  EXPECT_EQ(log(0.f), -kInf);
  EXPECT_EQ(log(kInf), kInf);
  EXPECT_TRUE(std::isnan(log(-1.f)));
  EXPECT_TRUE(std::isnan(log(NAN)));
}

TEST(CpuMath, Log2) {
  auto f = [](float x) { return log2(x); };
  auto want = [](double x) { return std::log2(x); };
  EXPECT_LT(worst_over_exponents(f, want, -125.9f, 127.9f, 1e-7), 3e-7);
  EXPECT_LT(worst(f, want, 0.5f, 2, 1e-7), 3e-7);
  for (int n = -126; n < 128; ++n) EXPECT_EQ(log2(std::ldexp(1.f, n)), static_cast<float>(n));
  EXPECT_EQ(log2(0.f), -kInf);
  EXPECT_TRUE(std::isnan(log2(-1.f)));
}

TEST(CpuMath, SinAndCos) {
  auto s = [](float x) { return sin(x); };
  auto c = [](float x) { return cos(x); };
  auto want_s = [](double x) { return std::sin(x); };
  auto want_c = [](double x) { return std::cos(x); };
  for (float range : {4.f, 100.f, 1e5f, 2e9f}) {
    EXPECT_LT(worst(s, want_s, -range, range, 1e-6), 2e-7) << range;
    EXPECT_LT(worst(c, want_c, -range, range, 1e-6), 2e-7) << range;
  }
  EXPECT_LT(worst_over_exponents(s, want_s, -120, 0), 2e-7);
  EXPECT_EQ(sin(0.f), 0.f);
  EXPECT_EQ(cos(0.f), 1.f);
  EXPECT_TRUE(std::isnan(sin(kInf)));
  EXPECT_TRUE(std::isnan(cos(NAN)));
}

TEST(CpuMath, Tanh) {
  auto f = [](float x) { return tanh(x); };
  auto want = [](double x) { return std::tanh(x); };
  EXPECT_LT(worst(f, want, -20, 20), 3e-7);
  EXPECT_LT(worst_over_exponents(f, want, -120, 5), 3e-7);
  EXPECT_EQ(tanh(kInf), 1.f);
  EXPECT_EQ(tanh(-kInf), -1.f);
  EXPECT_TRUE(std::isnan(tanh(NAN)));
}

TEST(CpuMath, SigmoidAndSilu) {
  auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_LT(worst([](float x) { return sigmoid(x); }, logistic, -86, 90), 4e-7);
  EXPECT_LT(
      worst([](float x) { return silu(x); }, [&](double x) { return x * logistic(x); }, -86, 90),
      4e-7);
  EXPECT_EQ(silu(-200.f), 0.f);
  EXPECT_EQ(sigmoid(-kInf), 0.f);
  EXPECT_EQ(sigmoid(kInf), 1.f);
}

TEST(CpuMath, RootsAndExtrema) {
  EXPECT_LT(worst_over_exponents([](float x) { return sqrt(x); },
                                 [](double x) { return std::sqrt(x); }, -125, 127),
            1e-7);
  EXPECT_LT(worst_over_exponents([](float x) { return rsqrt(x); },
                                 [](double x) { return 1 / std::sqrt(x); }, -125, 127),
            2e-7);
  EXPECT_EQ(rsqrt(0.f), kInf);
  EXPECT_EQ(max(1.f, 2.f), 2.f);
  EXPECT_EQ(min(1.f, 2.f), 1.f);
  EXPECT_EQ(max(NAN, 2.f), 2.f);
  EXPECT_EQ(abs(-3.f), 3.f);
}

}  // namespace
}  // namespace cria::tile
