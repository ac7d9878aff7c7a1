#include "support/differences.h"

#include <gtest/gtest-spi.h>

namespace cria::test {
namespace {

double loss(const std::vector<double>& x) { return std::sin(x[0]) * x[1]; }

TEST(Differences, AcceptsTheDerivative) {
  const std::vector<double> x = {0.3, 2}, gradient = {std::cos(0.3) * 2, std::sin(0.3)};
  expect_gradient(x, gradient, loss, "g");
}

TEST(Differences, RejectsAnyOther) {
  const std::vector<double> x = {0.3, 2}, gradient = {std::cos(0.3) * 2, std::sin(0.3) + 1e-5};
  EXPECT_NONFATAL_FAILURE(expect_gradient(x, gradient, loss, "g"), "g[1]");
}

}  // namespace
}  // namespace cria::test
