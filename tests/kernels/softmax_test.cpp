#include "kernels/softmax.h"

#include <cmath>

#include "kernels/harness.h"
#include "support/differences.h"

namespace cria::test {
namespace {

using namespace kernels;

std::vector<double> softmax(const std::vector<double>& x) {
  double top = -INFINITY, total = 0;
  for (const double v : x) top = std::max(top, v);
  for (const double v : x) total += std::exp(v - top);
  std::vector<double> y;
  for (const double v : x) y.push_back(std::exp(v - top) / total);
  return y;
}

// dx = y (dy - sum dy y)
std::vector<double> softmax_gradient(const std::vector<double>& y, const std::vector<double>& dy) {
  double mean = 0;
  for (size_t j = 0; j < y.size(); ++j) mean += dy[j] * y[j];
  std::vector<double> dx;
  for (size_t j = 0; j < y.size(); ++j) dx.push_back(y[j] * (dy[j] - mean));
  return dx;
}

template <class Operand>
std::vector<double> row_of(const Operand& x, int row, int cols) {
  std::vector<double> out(cols);
  for (int j = 0; j < cols; ++j) out[j] = x(row, j);
  return out;
}

std::vector<std::array<int, 2>> small_sizes() {
  auto sizes = cross({0, 1, 17, 65}, {0, 1, 3, 63, 64, 65, 128, 129, 255, 256, 257});
  for (const int cols : {1023, 1024, 1025, 2049, 4095, 4096, 4097, 8191, 8192, 8193})
    sizes.push_back({2, cols});
  return sizes;
}
const Sizes<2> kSizes = {.small = small_sizes(), .large = {{3, 20001}, {200, 1000}, {1000, 100}}};

template <class Case>
void check_forward(Case& t, int rows, int cols, double spread) {
  auto &x = t.input("x", {rows, cols}, spread), &y = t.output("y", {rows, cols});
  for (int i = 0; i < rows; ++i) {
    const auto want = softmax(row_of(x, i, cols));
    for (int j = 0; j < cols; ++j) y.want(i, j) = want[j];
  }
  y.tolerance = {.length = cols + 256, .norm = 1e-30};  // less underflows sooner or later
  t.run(SoftmaxForwardArgs<ElementOf<Case>>{.x = x, .y = y});
}
const bool forward = kernel_test<2>(
    "SoftmaxForward", kSizes, [](auto& t, int rows, int cols) { check_forward(t, rows, cols, 1); });
// Exponentials of these would overflow without the maximum taken off.
const bool large_inputs =
    kernel_test<2>("SoftmaxForwardLargeInputs", {.small = {{5, 300}, {2, 9000}}},
                   [](auto& t, int rows, int cols) { check_forward(t, rows, cols, 100); });

const bool in_place =
    kernel_test<2>("SoftmaxForwardInPlace", {.small = {{3, 100}, {3, 1000}, {2, 9000}}},
                   [](auto& t, int rows, int cols) {
                     auto& x = t.inout("x", {rows, cols});
                     for (int i = 0; i < rows; ++i) {
                       const auto want = softmax(row_of(x, i, cols));
                       for (int j = 0; j < cols; ++j) x.want(i, j) = want[j];
                     }
                     x.tolerance = {.length = cols + 256};
                     t.run(SoftmaxForwardArgs<ElementOf<decltype(t)>>{.x = x, .y = x});
                   });

const bool backward = kernel_test<2>("SoftmaxBackward", kSizes, [](auto& t, int rows, int cols) {
  auto &y = t.input("y", {rows, cols}, 0.1), &dy = t.input("dy", {rows, cols});
  auto& dx = t.output("dx", {rows, cols});
  double largest = 0;  // |y| (|dy| + sum |dy y|)
  for (int i = 0; i < rows; ++i) {
    const auto ys = row_of(y, i, cols), dys = row_of(dy, i, cols), want = softmax_gradient(ys, dys);
    double terms = 0;
    for (int j = 0; j < cols; ++j) terms += std::abs(ys[j] * dys[j]), dx.want(i, j) = want[j];
    for (int j = 0; j < cols; ++j)
      largest = std::max(largest, std::abs(ys[j]) * (std::abs(dys[j]) + terms));
  }
  dx.tolerance = {.length = cols, .norm = largest};
  t.run(SoftmaxBackwardArgs<ElementOf<decltype(t)>>{.y = y, .dy = dy, .dx = dx});
});

// A batch of scaled matrices, of which every row sees the columns up to its own, counted from the
// end: softmax of those columns alone, 0 elsewhere. sizes: batch, rows, columns
const Sizes<3> kCausal = {.small = {{0, 2, 2},
                                    {1, 1, 1},
                                    {2, 5, 5},
                                    {3, 4, 9},
                                    {2, 65, 65},
                                    {1, 70, 256},
                                    {2, 17, 257},
                                    {2, 2, 1025},
                                    {2, 3, 8193}},
                          .large = {{2, 300, 300}, {3, 2, 20001}}};
constexpr double kScale = 0.25;

int seen_by(int row, int rows, int cols) { return row + cols - rows + 1; }

const bool causal_forward =
    kernel_test<3>("SoftmaxForwardCausal", kCausal, [](auto& t, int batch, int rows, int cols) {
      auto &x = t.input("x", {batch, rows, cols}, 3), &y = t.output("y", {batch, rows, cols});
      for (int b = 0; b < batch; ++b)
        for (int i = 0; i < rows; ++i) {
          std::vector<double> seen(seen_by(i, rows, cols));
          for (size_t j = 0; j < seen.size(); ++j) seen[j] = kScale * x(b, i, j);
          seen = softmax(seen);
          for (size_t j = 0; j < seen.size(); ++j) y.want(b, i, j) = seen[j];
        }
      y.tolerance = {.length = cols + 256, .norm = 1e-30};
      t.run(SoftmaxForwardArgs<ElementOf<decltype(t)>>{
          .x = x, .y = y, .scale = float(kScale), .causal = true});
    });

// Of a causal forward pass: y is 0 above the diagonal, and what dy is there does not matter.
const bool causal_backward =
    kernel_test<3>("SoftmaxBackwardCausal", kCausal, [](auto& t, int batch, int rows, int cols) {
      auto &y = t.input("y", {batch, rows, cols}, 0.1), &dy = t.input("dy", {batch, rows, cols});
      auto& dx = t.output("dx", {batch, rows, cols});
      double largest = 0;
      for (int b = 0; b < batch; ++b)
        for (int i = 0; i < rows; ++i) {
          const int n = seen_by(i, rows, cols);
          std::vector<double> ys(n), dys(n);
          double terms = 0;
          for (int j = 0; j < n; ++j)
            ys[j] = y(b, i, j), dys[j] = dy(b, i, j), terms += std::abs(ys[j] * dys[j]);
          for (int j = n; j < cols; ++j) y.set(b * rows + i, j, 0);
          const auto want = softmax_gradient(ys, dys);
          for (int j = 0; j < n; ++j) {
            dx.want(b, i, j) = kScale * want[j];
            largest = std::max(largest, std::abs(kScale * ys[j]) * (std::abs(dys[j]) + terms));
          }
        }
      dx.tolerance = {.length = cols, .norm = largest};
      t.run(SoftmaxBackwardArgs<ElementOf<decltype(t)>>{
          .y = y, .dy = dy, .dx = dx, .scale = float(kScale)});
    });

TEST(SoftmaxBackward, ReferenceIsTheDerivative) {
  const std::vector<double> x = {0.5, -1, 2, 0.1, 0}, dy = {1, -2, 0.5, 3, -0.7};
  const auto scaled = [](std::vector<double> v) {
    for (double& e : v) e *= kScale;
    return v;
  };
  expect_gradient(
      x, scaled(softmax_gradient(softmax(scaled(x)), dy)),
      [&](const std::vector<double>& v) {
        double loss = 0;
        const auto y = softmax(scaled(v));
        for (size_t i = 0; i < v.size(); ++i) loss += dy[i] * y[i];
        return loss;
      },
      "x");
}

}  // namespace
}  // namespace cria::test
