#include "support/compare.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace cria::test {
namespace {

TEST(Compare, PassesWithinRounding) {
  const std::vector<double> want = {1.0, 1.0 / 3, -1e-3, 0.0, 1e30};
  std::vector<bf16> got;
  for (const double x : want) got.push_back(from_float<bf16>(static_cast<float>(x)));
  expect_close(got, want, Tolerance{.out = DType::bf16}, "x");
}

TEST(Compare, NamesWhatIsOff) {
  static const std::vector<float> got = {1, 2, 3.5, 4, 6, 6};
  static const std::vector<double> want = {1, 2, 3, 4, 5, 6};
  EXPECT_NONFATAL_FAILURE(expect_close(got, want, Tolerance{}, "dx", 2), "dx (f32): 2 of 6 off");
  EXPECT_NONFATAL_FAILURE(expect_close(got, want, Tolerance{}, "dx", 2),
                          "first [2] (row 1, column 0): got 3.5, want 3, tolerance");
  EXPECT_NONFATAL_FAILURE(expect_close(got, want, Tolerance{}, "dx", 2),
                          "worst [4] (row 2, column 0): got 6, want 5, tolerance");
}

TEST(Compare, AnElementHasTheErrorItIsAllowed) {
  static const std::vector<float> got = {1, 2.5, 3.5};
  static const std::vector<double> want = {1, 2, 3}, errors = {0, 0.6, 0.4};
  EXPECT_NONFATAL_FAILURE(expect_close(got, want, Tolerance{}, "x", 0, errors), "1 of 3 off");
  EXPECT_NONFATAL_FAILURE(expect_close(got, want, Tolerance{}, "x", 0, errors),
                          "first [2]: got 3.5, want 3, tolerance 0.4");
}

TEST(Compare, NanNeverPasses) {
  static const std::vector<float> nan = {NAN}, one = {1};
  static const std::vector<double> nan_wanted = {NAN}, one_wanted = {1};
  const Tolerance loose{.norm = 1e30};
  EXPECT_NONFATAL_FAILURE(expect_close(nan, one_wanted, Tolerance{.norm = 1e30}, "x"), "got nan");
  EXPECT_NONFATAL_FAILURE(expect_close(nan, nan_wanted, Tolerance{.norm = 1e30}, "x"), "1 of 1");
  EXPECT_NONFATAL_FAILURE(expect_close(one, nan_wanted, Tolerance{.norm = 1e30}, "x"), "want nan");
  expect_close(one, one_wanted, loose, "x");
}

TEST(Compare, InfinityOnlyWhereItBelongs) {
  static const std::vector<f16> overflow = {from_float<f16>(INFINITY)};
  static const std::vector<double> large = {1e6}, small = {1.0}, negative = {-1e6};
  const Tolerance tolerance{.out = DType::f16};
  expect_close(overflow, large, tolerance, "x");
  EXPECT_NONFATAL_FAILURE(expect_close(overflow, small, Tolerance{.out = DType::f16}, "x"), "inf");
  EXPECT_NONFATAL_FAILURE(expect_close(overflow, negative, Tolerance{.out = DType::f16}, "x"),
                          "inf");
}

TEST(Compare, SizesMustAgree) {
  static const std::vector<float> got = {1, 2};
  static const std::vector<double> want = {1};
  EXPECT_NONFATAL_FAILURE(expect_close(got, want, Tolerance{}, "x"), "2 elements, want 1");
}

TEST(Compare, IntegersAreExact) {
  static const std::vector<int32_t> got = {1 << 20, 3};
  static const std::vector<double> want = {1 << 20, 3}, other = {1 << 20, 4};
  expect_close(got, want, Tolerance{.out = DType::i32, .length = 1000}, "n");
  EXPECT_NONFATAL_FAILURE(expect_close(got, other, Tolerance{.out = DType::i32}, "n"), "1 of 2");
}

TEST(Compare, ToleranceGrowsWithLengthAndNorm) {
  const Tolerance narrow{.length = 100, .norm = 10};
  EXPECT_LT(narrow.bound(1), (Tolerance{.length = 10'000, .norm = 10}).bound(1));
  EXPECT_LT(narrow.bound(1), (Tolerance{.length = 100, .norm = 100}).bound(1));
  EXPECT_LT(narrow.bound(1), (Tolerance{.out = DType::bf16, .length = 100, .norm = 10}).bound(1));
  const double inner = roundoff(DType::bf16);
  EXPECT_LT(narrow.bound(1), (Tolerance{.length = 100, .norm = 10, .inner = inner}).bound(1));
  // A float sum of random terms in order stays inside, and a lost term does not.
  std::vector<double> terms;
  float sum = 0;
  double exact = 0;
  for (int i = 0; i < 4096; ++i) {
    const float term = std::sin(static_cast<float>(i * i));
    sum += term;
    exact += term;
    terms.push_back(term);
  }
  const Tolerance of_sum{.length = 4096, .norm = norm(terms) * 64};
  EXPECT_LT(std::abs(sum - exact), of_sum.bound(exact));
  EXPECT_GT(std::abs(terms[77]), of_sum.bound(exact));
}

}  // namespace
}  // namespace cria::test
