#include "kernels/gemm_group.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/harness.h"

namespace cria::test {
namespace {

using namespace kernels;

// Products of k x m and k x n matrices, of as many different shapes as asked for.
void check_group(auto& t, int count, int m, int n, int k, DotPrecision precision) {
  using T = ElementOf<decltype(t)>;
  GemmGroupArgs<T> args{.parts = {}, .precision = precision};
  for (int p = 0; p < count; ++p) {
    const int rows = m + 40 * p, cols = std::max(n - 24 * p, 0);
    const std::string name = std::to_string(p);
    auto& a = t.input("a" + name, {k, rows});
    auto& b = t.input("b" + name, {k, cols});
    auto& c = t.output("c" + name, {rows, cols});
    double largest = 0;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < cols; ++j) {
        double sum = 0, magnitude = 0;
        for (int l = 0; l < k; ++l)
          sum += a(l, i) * b(l, j), magnitude += std::abs(a(l, i) * b(l, j));
        c.want(i, j) = sum;
        largest = std::max(largest, magnitude);
      }
    c.tolerance = {.length = k,
                   .norm = largest,
                   .inner = precision == DotPrecision::kTf32 ? 2 * kRoundoffTf32 : 0};
    args.parts[p] = {a, b, c};
  }
  t.run(args);
}

const bool all = kernel_test<4>(
    "GemmGroup",
    {.small = {{1, 1, 1, 1}, {2, 0, 5, 4}, {3, 64, 72, 40}, {4, 65, 130, 33}, {2, 5, 24, 0}},
     .large = {{4, 300, 392, 200}}},
    [](auto& t, int count, int m, int n, int k) {
      check_group(t, count, m, n, k, DotPrecision::kFp32);
    },
    {DType::f32, DType::bf16});
const bool tf32 = kernel_test<4>("GemmGroupTf32", {.small = {{3, 64, 72, 40}}},
                                 [](auto& t, int count, int m, int n, int k) {
                                   check_group(t, count, m, n, k, DotPrecision::kTf32);
                                 },
                                 {DType::f32});

}  // namespace
}  // namespace cria::test
