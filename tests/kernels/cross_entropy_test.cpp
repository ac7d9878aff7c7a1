#include "kernels/cross_entropy.h"

#include <cmath>

#include "kernels/harness.h"
#include "support/differences.h"

namespace cria::test {
namespace {

using namespace kernels;

struct Exact {
  double loss = 0;
  std::vector<double> gradient;  // softmax - onehot
};

Exact cross_entropy(const std::vector<double>& x, int target) {
  double top = -INFINITY, total = 0;
  for (const double v : x) top = std::max(top, v);
  for (const double v : x) total += std::exp(v - top);
  Exact out{top + std::log(total) - x[target], {}};
  for (const double v : x) out.gradient.push_back(std::exp(v - top) / total);
  out.gradient[target] -= 1;
  return out;
}

template <class Case>
void check(Case& t, int rows, int cols, double spread, bool gradient) {
  const double scale = 1.0 / 16;
  auto& logits = t.inout("logits", {rows, cols}, spread);
  auto& targets = t.i32_input("targets", {rows});
  auto& loss = t.fp32_output("loss", {rows, 1});
  double largest = 1;
  for (int r = 0; r < rows && cols > 0; ++r) {
    const int target = r == 0 ? cols - 1 : r == 1 ? 0 : r * 7919 % cols;
    targets.set(0, r, target);
    std::vector<double> x(cols);
    for (int c = 0; c < cols; ++c) x[c] = logits(r, c), largest = std::max(largest, std::abs(x[c]));
    const Exact exact = cross_entropy(x, target);
    loss.want(r, 0) = exact.loss;
    for (int c = 0; c < cols; ++c)
      logits.want(r, c) = gradient ? exact.gradient[c] * scale : logits(r, c);
  }
  // Exponents are rounded as their arguments are: by the largest logit.
  logits.tolerance = {.length = cols + 256, .norm = gradient ? scale * largest / cols : 0};
  loss.tolerance = {.length = cols + 256, .norm = largest};
  t.run(CrossEntropyArgs<ElementOf<Case>>{.logits = logits,
                                          .targets = targets,
                                          .loss = loss,
                                          .scale = float(scale),
                                          .gradient = gradient});
}

const bool trained = kernel_test<2>(
    "CrossEntropy",
    {.small = {{0, 5},
               {1, 1},
               {3, 2},
               {5, 65},
               {3, 2047},
               {3, 2048},
               {2, 2049},
               {2, 8191},
               {2, 8192},
               {2, 8193}},
     .large = {{2, 16385}, {3, 32000}, {1, 32768}, {2, 32771}, {40, 1000}, {2, 50257}}},
    [](auto& t, int rows, int cols) { check(t, rows, cols, 1, true); }, kTrainingTypes);
const bool evaluated = kernel_test<2>(
    "CrossEntropyLossOnly", {.small = {{3, 100}, {2, 8200}}, .large = {{2, 40000}}},
    [](auto& t, int rows, int cols) { check(t, rows, cols, 1, false); }, kTrainingTypes);
// Exponentials of these would overflow without the maximum taken off.
const bool large_inputs = kernel_test<2>(
    "CrossEntropyLargeInputs", {.small = {{5, 300}, {2, 9000}}},
    [](auto& t, int rows, int cols) { check(t, rows, cols, 100, true); }, kTrainingTypes);

TEST(CrossEntropy, ReferenceIsTheDerivative) {
  const std::vector<double> x = {0.5, -1, 2, 0.1, 0};
  for (const int target : {0, 2, 4})
    expect_gradient(
        x, cross_entropy(x, target).gradient,
        [&](const std::vector<double>& v) { return cross_entropy(v, target).loss; }, "logits");
}

}  // namespace
}  // namespace cria::test
