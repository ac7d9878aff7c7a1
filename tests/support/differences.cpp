#include "support/differences.h"

#include <algorithm>

namespace cria::test {

void expect_gradient(std::vector<double> x, std::span<const double> gradient,
                     const std::function<double(const std::vector<double>&)>& loss,
                     std::string_view name) {
  ASSERT_EQ(x.size(), gradient.size()) << name;
  // The error of a central difference is about step² in the function's third derivative, plus the
  // loss's own rounding over the step: 1e-10 and 1e-11 for values around 1.
  constexpr double kStep = 1e-5, kTolerance = 1e-7;
  double largest = 1;
  for (const double g : gradient) largest = std::max(largest, std::abs(g));
  for (size_t i = 0; i < x.size(); ++i) {
    const double center = x[i];
    x[i] = center + kStep;
    const double above = loss(x);
    x[i] = center - kStep;
    const double below = loss(x);
    x[i] = center;
    EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), kTolerance * largest)
        << name << '[' << i << ']';
  }
}

}  // namespace cria::test
