#include "kernels/gemm_group.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/harness.h"
#include "kernels/products.h"

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
    const Products product = products_of(
        rows, cols, k, [&](int i, int l) { return a(l, i); },
        [&](int l, int j) { return b(l, j); });
    double largest = 0;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < cols; ++j) {
        c.want(i, j) = product.sum(i, j);
        largest = std::max(largest, product.size(i, j));
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
     .large = {{4, 300, 392, 200}},
     .many_tiles = {{4, 3304, 1000, 72}}},
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
