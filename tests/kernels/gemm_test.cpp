#include "kernels/gemm.h"

#include <algorithm>
#include <cmath>

#include "kernels/harness.h"
#include "kernels/products.h"

namespace cria::test {
namespace {

using namespace kernels;

const Sizes<3> kSizes{.small = {{1, 1, 1},
                                {3, 2, 0},
                                {0, 5, 4},
                                {64, 64, 64},
                                {65, 63, 70},
                                {16, 200, 33},
                                {128, 136, 72}},
                      .large = {{300, 392, 200}},
                      .many_tiles = {{8136, 1784, 72}}};

// c = op(a) op(b) [+ residual], where op transposes what is stored transposed.
template <bool TransA, bool TransB>
void check_product(auto& t, int m, int n, int k, bool adds, DotPrecision precision) {
  using T = ElementOf<decltype(t)>;
  auto& a = TransA ? t.input("a", {k, m}) : t.input("a", {m, k});
  auto& b = TransB ? t.input("b", {n, k}) : t.input("b", {k, n});
  auto& residual = t.input("residual", {adds ? m : 0, n});
  auto& c = t.output("c", {m, n});
  const Products product = products_of(
      m, n, k, [&](int i, int l) { return TransA ? a(l, i) : a(i, l); },
      [&](int l, int j) { return TransB ? b(j, l) : b(l, j); });
  double largest = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      const double more = adds ? residual(i, j) : 0;
      c.want(i, j) = product.sum(i, j) + more;
      largest = std::max(largest, product.size(i, j) + std::abs(more));
    }
  c.tolerance = {.length = k + adds,
                 .norm = largest,
                 .inner = precision == DotPrecision::kTf32 ? 2 * kRoundoffTf32 : 0};
  GemmArgs<T, TransA, TransB> args{.a = a, .b = b, .c = c, .precision = precision};
  if (adds) args.residual = residual;
  t.run(args);
}

template <bool TransA, bool TransB>
bool test_product(const char* name, const char* adding, const char* tf32) {
  kernel_test<3>(name, kSizes, [](auto& t, int m, int n, int k) {
    check_product<TransA, TransB>(t, m, n, k, false, DotPrecision::kFp32);
  });
  kernel_test<3>(adding, {.small = {{1, 1, 1}, {65, 63, 70}, {128, 136, 72}}},
                 [](auto& t, int m, int n, int k) {
                   check_product<TransA, TransB>(t, m, n, k, true, DotPrecision::kFp32);
                 });
  return kernel_test<3>(tf32, {.small = {{65, 63, 70}, {128, 136, 72}}},
                        [](auto& t, int m, int n, int k) {
                          check_product<TransA, TransB>(t, m, n, k, false, DotPrecision::kTf32);
                        },
                        {DType::f32});
}

const bool nn = test_product<false, false>("GemmNN", "GemmNNResidual", "GemmNNTf32");
const bool nt = test_product<false, true>("GemmNT", "GemmNTResidual", "GemmNTTf32");
const bool tn = test_product<true, false>("GemmTN", "GemmTNResidual", "GemmTNTf32");
const bool tt = test_product<true, true>("GemmTT", "GemmTTResidual", "GemmTTTf32");

// c += a b: the residual is the output itself.
const bool in_place = kernel_test<3>(
    "GemmInPlace", {.small = {{65, 63, 70}, {128, 136, 72}}, .many_tiles = {{8136, 1784, 72}}},
    [](auto& t, int m, int n, int k) {
      auto& a = t.input("a", {m, k});
      auto& b = t.input("b", {n, k});
      auto& c = t.inout("c", {m, n});
      const Products product = products_of(
          m, n, k, [&](int i, int l) { return a(i, l); }, [&](int l, int j) { return b(j, l); });
      double largest = 0;
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          c.want(i, j) = product.sum(i, j) + c(i, j);
          largest = std::max(largest, product.size(i, j) + std::abs(c(i, j)));
        }
      c.tolerance = {.length = k + 1, .norm = largest};
      t.run(GemmArgs<ElementOf<decltype(t)>, false, true>{.a = a, .b = b, .c = c, .residual = c});
    });

// Tiles in bands cover every tile exactly once.
TEST(Banded, VisitsEveryTileOnce) {
  for (int rows : {1, 2, 15, 16, 17, 40})
    for (int cols : {1, 3, 16})
      for (int band : {1, 8, 16}) {
        std::vector<int> seen(rows * cols);
        for (int t = 0; t < rows * cols; ++t) {
          const TileIndex at = banded(t, rows, cols, band);
          ASSERT_TRUE(at.row >= 0 && at.row < rows && at.col >= 0 && at.col < cols);
          ++seen[at.row * cols + at.col];
        }
        EXPECT_TRUE(std::ranges::all_of(seen, [](int n) { return n == 1; }));
      }
}

}  // namespace
}  // namespace cria::test
