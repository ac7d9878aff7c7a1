#include "kernels/gate_up.h"

#include <algorithm>
#include <cmath>

#include "kernels/harness.h"

namespace cria::test {
namespace {

using namespace kernels;

// y = silu(x gateᵀ) * (x upᵀ). If kept, its derivatives by both products are the halves of one
// buffer.
void check_gate_up(auto& t, int m, int f, int d, DotPrecision precision, bool keep = false) {
  using T = ElementOf<decltype(t)>;
  auto& x = t.input("x", {m, d});
  auto& gate = t.input("gate", {f, d}, 0.3);
  auto& up = t.input("up", {f, d}, 0.3);
  auto& y = t.output("y", {m, f});
  auto* derivatives = keep ? &t.output("derivatives", {m, 2 * f}) : nullptr;
  double largest = 0, largest_derivative = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < f; ++j) {
      double g = 0, u = 0, g_size = 0, u_size = 0;
      for (int k = 0; k < d; ++k) {
        g += x(i, k) * gate(j, k), g_size += std::abs(x(i, k) * gate(j, k));
        u += x(i, k) * up(j, k), u_size += std::abs(x(i, k) * up(j, k));
      }
      const double s = 1 / (1 + std::exp(-g)), slope = s * (1 + g * (1 - s));
      y.want(i, j) = g * s * u;
      if (keep) derivatives->want(i, j) = u * slope, derivatives->want(i, f + j) = g * s;
      // An error e in g moves silu(g) by at most 1.1 e, and its slope by 0.5 e.
      largest = std::max(largest, 1.1 * g_size * std::abs(u) + std::abs(g) * u_size);
      largest_derivative =
          std::max({largest_derivative, 0.5 * g_size * std::abs(u) + 1.1 * u_size, 1.1 * g_size});
    }
  const double of_products = precision == DotPrecision::kTf32 ? 2 * kRoundoffTf32 : 0;
  y.tolerance = {.length = d, .norm = largest, .inner = of_products + roundoff(dtype_of<T>)};
  GateUpArgs<T> args{.x = x, .gate = gate, .up = up, .y = y, .precision = precision};
  if (keep) {
    derivatives->tolerance = y.tolerance;
    derivatives->tolerance.norm = largest_derivative;
    args.by_gate = matrix_of<T>(derivatives->data(), m, f, 2 * f);
    args.by_up = matrix_of<T>(derivatives->data() + f, m, f, 2 * f);
  }
  t.run(args);
}

const bool fp32 = kernel_test<3>(
    "GateUp",
    {.small = {{1, 1, 1}, {0, 3, 4}, {5, 7, 0}, {64, 64, 64}, {65, 70, 40}, {130, 72, 136}},
     .large = {{300, 264, 200}}},
    [](auto& t, int m, int f, int d) { check_gate_up(t, m, f, d, DotPrecision::kFp32); });

const bool kept = kernel_test<3>(
    "GateUpKept",
    {.small = {{1, 1, 1}, {0, 3, 4}, {5, 7, 0}, {64, 64, 64}, {65, 72, 40}, {130, 136, 136}},
     .large = {{300, 264, 200}}},
    [](auto& t, int m, int f, int d) { check_gate_up(t, m, f, d, DotPrecision::kFp32, true); });

const bool tf32 = kernel_test<3>(
    "GateUpTf32", {.small = {{65, 70, 40}, {128, 72, 136}}},
    [](auto& t, int m, int f, int d) { check_gate_up(t, m, f, d, DotPrecision::kTf32); },
    {DType::f32});

}  // namespace
}  // namespace cria::test
