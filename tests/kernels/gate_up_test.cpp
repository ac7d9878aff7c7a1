#include "kernels/gate_up.h"

#include <cmath>

#include "kernels/harness.h"
#include "kernels/products.h"

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
  const auto product_with = [&](auto& w) {
    return products_of(
        m, f, d, [&](int i, int k) { return x(i, k); }, [&](int k, int j) { return w(j, k); });
  };
  const Products by_gate = product_with(gate), by_up = product_with(up);
  // Both products are rounded before they meet.
  const auto error_of = [&](const Products& p, int i, int j) {
    return product_error<T>(d, p.size(i, j), precision) + rounding_error<T>(p.sum(i, j));
  };
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < f; ++j) {
      const double g = by_gate.sum(i, j), g_error = error_of(by_gate, i, j);
      const double u = by_up.sum(i, j), u_error = error_of(by_up, i, j);
      const double s = 1 / (1 + std::exp(-g)), slope = s * (1 + g * (1 - s));
      // An error e in g moves silu(g) by at most 1.1 e, and its slope by 0.5 e. Both have some of
      // their own, in fp32.
      const double silu_error = 1.1 * g_error + sum_error(4, std::abs(g * s));
      const double slope_error = 0.5 * g_error + sum_error(4, s * (1 + std::abs(g) * (1 - s)));
      y.want(i, j) = g * s * u;
      y.error(i, j) = silu_error * std::abs(u) + std::abs(g * s) * u_error;
      if (!keep) continue;
      derivatives->want(i, j) = u * slope, derivatives->want(i, f + j) = g * s;
      derivatives->error(i, j) = slope_error * std::abs(u) + std::abs(slope) * u_error;
      derivatives->error(i, f + j) = silu_error;
    }
  GateUpArgs<T> args{.x = x, .gate = gate, .up = up, .y = y, .precision = precision};
  if (keep) {
    derivatives->set_parts(2);
    args.by_gate = matrix_of<T>(derivatives->data(), m, f, 2 * f);
    args.by_up = matrix_of<T>(derivatives->data() + f, m, f, 2 * f);
  }
  t.run(args);
}

const bool fp32 = kernel_test<3>(
    "GateUp",
    {.small = {{1, 1, 1},
               {0, 3, 4},
               {5, 7, 0},
               {64, 64, 64},
               {65, 67, 41},
               {65, 70, 40},
               {130, 72, 136}},
     .large = {{300, 264, 200}},
     .many_tiles = {{8136, 632, 72}}},
    [](auto& t, int m, int f, int d) { check_gate_up(t, m, f, d, DotPrecision::kFp32); });

const bool kept = kernel_test<3>(
    "GateUpKept",
    {.small = {{1, 1, 1},
               {0, 3, 4},
               {5, 7, 0},
               {64, 64, 64},
               {65, 67, 41},
               {65, 72, 40},
               {130, 136, 136}},
     .large = {{300, 264, 200}},
     .many_tiles = {{8136, 632, 72}}},
    [](auto& t, int m, int f, int d) { check_gate_up(t, m, f, d, DotPrecision::kFp32, true); });

const bool tf32 = kernel_test<3>(
    "GateUpTf32", {.small = {{65, 70, 40}, {128, 72, 136}}},
    [](auto& t, int m, int f, int d) { check_gate_up(t, m, f, d, DotPrecision::kTf32); },
    {DType::f32});

}  // namespace
}  // namespace cria::test
