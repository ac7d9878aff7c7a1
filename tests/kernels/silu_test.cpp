#include "kernels/silu.h"

#include <cmath>

#include "kernels/harness.h"
#include "support/differences.h"

namespace cria::test {
namespace {

using namespace kernels;

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double silu_of(double x) { return x * sigmoid_of(x); }
double silu_slope(double x) { return sigmoid_of(x) * (1 + x * (1 - sigmoid_of(x))); }

const Sizes<2> kSizes = {.small = cross({0, 1, 3}, {0, 1, 129, 1023, 1024, 1025, 2049, 4097}),
                         .large = {{37, 8193}, {300, 520}}};
const double kSpread = 4;  // standard deviation of inputs: reaches both flat ends of the sigmoid
const Tolerance kTolerance = {.length = 64};  // a handful of roundings in a row

const bool forward = kernel_test<2>("SiluForward", kSizes, [](auto& t, int rows, int cols) {
  auto &x = t.input("x", {rows, cols}, kSpread), &y = t.output("y", {rows, cols});
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) y.want(i, j) = silu_of(x(i, j));
  y.tolerance = kTolerance;
  t.run(SiluForwardArgs<ElementOf<decltype(t)>>{.x = x, .y = y});
});

const bool backward = kernel_test<2>("SiluBackward", kSizes, [](auto& t, int rows, int cols) {
  auto &x = t.input("x", {rows, cols}, kSpread), &dy = t.input("dy", {rows, cols});
  auto& dx = t.output("dx", {rows, cols});
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) dx.want(i, j) = dy(i, j) * silu_slope(x(i, j));
  dx.tolerance = {.length = 64, .norm = 1};  // the slope passes through zero
  t.run(SiluBackwardArgs<ElementOf<decltype(t)>>{.x = x, .dy = dy, .dx = dx});
});

const bool up_forward = kernel_test<2>("SiluUpForward", kSizes, [](auto& t, int rows, int cols) {
  auto &gate = t.input("gate", {rows, cols}, kSpread), &up = t.input("up", {rows, cols});
  auto& y = t.output("y", {rows, cols});
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) y.want(i, j) = silu_of(gate(i, j)) * up(i, j);
  y.tolerance = kTolerance;
  t.run(SiluUpForwardArgs<ElementOf<decltype(t)>>{.gate = gate, .up = up, .y = y});
});

// gate and up are the halves of one buffer's rows.
const bool up_halves =
    kernel_test<2>("SiluUpForwardHalves", kSizes, [](auto& t, int rows, int cols) {
      using T = ElementOf<decltype(t)>;
      auto &both = t.input("gate_up", {rows, 2 * cols}, kSpread), &y = t.output("y", {rows, cols});
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < cols; ++j) y.want(i, j) = silu_of(both(i, j)) * both(i, cols + j);
      y.tolerance = kTolerance;
      both.set_parts(2);
      t.run(SiluUpForwardArgs<T>{.gate = matrix_of<const T>(both.data(), rows, cols, 2 * cols),
                                 .up = matrix_of<const T>(both.data() + cols, rows, cols, 2 * cols),
                                 .y = y});
    });

// Gradients of loss = sum of dy silu(gate) up.
double up_slope_gate(double gate, double up, double dy) { return dy * up * silu_slope(gate); }
double up_slope_up(double gate, double dy) { return dy * silu_of(gate); }

const bool up_backward = kernel_test<2>("SiluUpBackward", kSizes, [](auto& t, int rows, int cols) {
  auto &gate = t.input("gate", {rows, cols}, kSpread), &up = t.input("up", {rows, cols});
  auto &dy = t.input("dy", {rows, cols}), &dgate = t.output("dgate", {rows, cols});
  auto& dup = t.output("dup", {rows, cols});
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) {
      dgate.want(i, j) = up_slope_gate(gate(i, j), up(i, j), dy(i, j));
      dup.want(i, j) = up_slope_up(gate(i, j), dy(i, j));
    }
  dgate.tolerance = {.length = 64, .norm = 1}, dup.tolerance = kTolerance;
  t.run(SiluUpBackwardArgs<ElementOf<decltype(t)>>{
      .gate = gate, .up = up, .dy = dy, .dgate = dgate, .dup = dup});
});

// The gradients take the place of the values, in one buffer.
const bool up_backward_in_place =
    kernel_test<2>("SiluUpBackwardInPlace", kSizes, [](auto& t, int rows, int cols) {
      using T = ElementOf<decltype(t)>;
      auto &both = t.inout("gate_up", {rows, 2 * cols}, 2), &dy = t.input("dy", {rows, cols});
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < cols; ++j) {
          both.want(i, j) = up_slope_gate(both(i, j), both(i, cols + j), dy(i, j));
          both.want(i, cols + j) = up_slope_up(both(i, j), dy(i, j));
        }
      both.tolerance = {.length = 64, .norm = 2};
      both.set_parts(2);
      const auto gate = matrix_of<T>(both.data(), rows, cols, 2 * cols);
      const auto up = matrix_of<T>(both.data() + cols, rows, cols, 2 * cols);
      t.run(SiluUpBackwardArgs<T>{.gate = gate, .up = up, .dy = dy, .dgate = gate, .dup = up});
    });

// The activation is computed once more, in the place of its gradient.
const bool up_backward_recomputed =
    kernel_test<2>("SiluUpBackwardRecomputed", kSizes, [](auto& t, int rows, int cols) {
      using T = ElementOf<decltype(t)>;
      auto &both = t.inout("gate_up", {rows, 2 * cols}, 2), &dy = t.inout("dy", {rows, cols});
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < cols; ++j) {
          both.want(i, j) = up_slope_gate(both(i, j), both(i, cols + j), dy(i, j));
          both.want(i, cols + j) = up_slope_up(both(i, j), dy(i, j));
          dy.want(i, j) = silu_of(both(i, j)) * both(i, cols + j);
        }
      both.tolerance = {.length = 64, .norm = 2}, dy.tolerance = kTolerance;
      both.set_parts(2);
      const auto gate = matrix_of<T>(both.data(), rows, cols, 2 * cols);
      const auto up = matrix_of<T>(both.data() + cols, rows, cols, 2 * cols);
      t.run(SiluUpBackwardArgs<T>{
          .gate = gate, .up = up, .dy = dy, .dgate = gate, .dup = up, .y = dy});
    });

TEST(SiluUpBackward, ReferenceIsTheDerivative) {
  const std::vector<double> x = {-3, 0.5, 2, 1.5, -0.25, 4};  // gate, then up
  const double dy[] = {0.7, -1, 2};
  std::vector<double> gradient;
  for (int i = 0; i < 3; ++i) gradient.push_back(up_slope_gate(x[i], x[3 + i], dy[i]));
  for (int i = 0; i < 3; ++i) gradient.push_back(up_slope_up(x[i], dy[i]));
  expect_gradient(
      x, gradient,
      [&](const std::vector<double>& v) {
        double loss = 0;
        for (int i = 0; i < 3; ++i) loss += dy[i] * silu_of(v[i]) * v[3 + i];
        return loss;
      },
      "gate, up");
}

}  // namespace
}  // namespace cria::test
