#include "kernels/gate_up_backward.h"

#include <algorithm>
#include <cmath>

#include "kernels/harness.h"
#include "support/differences.h"

namespace cria::test {
namespace {

using namespace kernels;

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// What one element of the three results is, and the most that an error of 1 in dact moves them.
struct Reference {
  double dgate, dup, y;
  Reference(double gate, double up, double dact) {
    const double s = sigmoid_of(gate);
    dgate = dact * up * s * (1 + gate * (1 - s)), dup = dact * gate * s, y = gate * s * up;
  }
  static double reach(double gate, double up) { return 1.1 * std::abs(up) + std::abs(gate); }
};

enum class Memory { apart, in_place, without_y };

// dact = dy down, then the gradients of silu(gate) up, and that itself. gate and up are the halves
// of one buffer's rows; in place, the gradients come to lie over them.
void check(auto& t, int m, int f, int d, Memory memory,
           DotPrecision precision = DotPrecision::kFp32) {
  using T = ElementOf<decltype(t)>;
  const bool in_place = memory == Memory::in_place;
  auto &dy = t.input("dy", {m, d}), &down = t.input("down", {d, f}, 0.3);
  auto& values = in_place ? t.inout("gate_up", {m, 2 * f}, 2) : t.input("gate_up", {m, 2 * f}, 2);
  auto& gradients = in_place ? values : t.output("dgate_dup", {m, 2 * f});
  auto* y = memory == Memory::without_y ? nullptr : &t.output("y", {m, f});
  double largest = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < f; ++j) {
      double dact = 0, size = 0;
      for (int k = 0; k < d; ++k)
        dact += dy(i, k) * down(k, j), size += std::abs(dy(i, k) * down(k, j));
      const double gate = values(i, j), up = values(i, f + j);
      const Reference want(gate, up, dact);
      gradients.want(i, j) = want.dgate, gradients.want(i, f + j) = want.dup;
      if (y) y->want(i, j) = want.y;
      largest = std::max(largest, size * Reference::reach(gate, up));
    }
  gradients.tolerance = {
      .length = d + 64,
      .norm = largest,
      .inner = roundoff(dtype_of<T>) + (precision == DotPrecision::kTf32 ? 2 * kRoundoffTf32 : 0)};
  const auto half = [&](auto& both, int column) {
    return matrix_of<T>(both.data() + column, m, f, 2 * f);
  };
  GateUpBackwardArgs<T> args{.dy = dy,
                             .down = down,
                             .gate = half(values, 0),
                             .up = half(values, f),
                             .dgate = half(gradients, 0),
                             .dup = half(gradients, f),
                             .precision = precision};
  if (y) {
    y->tolerance = {.length = 64};
    args.y = *y;
  }
  t.run(args);
}

const Sizes<3> kSizes = {.small = {{1, 1, 1},
                                   {0, 3, 4},
                                   {5, 7, 0},
                                   {64, 64, 64},
                                   {65, 72, 40},
                                   {130, 136, 136},
                                   {40, 264, 8}},
                         .large = {{300, 264, 200}, {257, 520, 72}}};

const bool apart = kernel_test<3>(
    "GateUpBackward", kSizes,
    [](auto& t, int m, int f, int d) { check(t, m, f, d, Memory::apart); }, kTrainingTypes);
const bool in_place = kernel_test<3>(
    "GateUpBackwardInPlace", kSizes,
    [](auto& t, int m, int f, int d) { check(t, m, f, d, Memory::in_place); }, kTrainingTypes);
const bool without_y = kernel_test<3>(
    "GateUpBackwardWithoutY", {.small = {{65, 72, 40}}},
    [](auto& t, int m, int f, int d) { check(t, m, f, d, Memory::without_y); }, kTrainingTypes);
const bool tf32 = kernel_test<3>(
    "GateUpBackwardTf32", {.small = {{65, 70, 40}, {128, 72, 136}}},
    [](auto& t, int m, int f, int d) { check(t, m, f, d, Memory::apart, DotPrecision::kTf32); },
    {DType::f32});

TEST(GateUpBackward, ReferenceIsTheDerivative) {
  const std::vector<double> x = {-3, 0.5, 2, 1.5, -0.25, 4};  // gate, then up
  const double dact[] = {0.7, -1, 2};
  std::vector<double> gradient;
  for (int i = 0; i < 3; ++i) gradient.push_back(Reference(x[i], x[3 + i], dact[i]).dgate);
  for (int i = 0; i < 3; ++i) gradient.push_back(Reference(x[i], x[3 + i], dact[i]).dup);
  expect_gradient(
      x, gradient,
      [&](const std::vector<double>& v) {
        double loss = 0;
        for (int i = 0; i < 3; ++i) loss += dact[i] * Reference(v[i], v[3 + i], 1).y;
        return loss;
      },
      "gate, up");
}

}  // namespace
}  // namespace cria::test
