#include "kernels/qkv.h"

#include <algorithm>
#include <cmath>

#include "kernels/harness.h"
#include "kernels/products.h"

namespace cria::test {
namespace {

using namespace kernels;

struct Shape {
  int rows, dim, heads, turned, head_dim, seq;  // heads: all; turned: the first of them
};

// y = x wᵀ with its first heads turned, row r by the angles of position r % seq.
void check_qkv(auto& t, const Shape& s, DotPrecision precision = DotPrecision::kFp32) {
  using T = ElementOf<decltype(t)>;
  const int half = s.head_dim / 2, n = s.heads * s.head_dim;
  auto &x = t.input("x", {s.rows, s.dim}), &w = t.input("w", {n, s.dim}, 0.3);
  auto &cos = t.fp32_input("cos", {s.seq, half}), &sin = t.fp32_input("sin", {s.seq, half});
  auto& y = t.output("y", {s.rows, n});
  for (int p = 0; p < s.seq; ++p)
    for (int i = 0; i < half; ++i)
      cos.set(p, i, std::cos(0.7 * p / (i + 1))), sin.set(p, i, std::sin(0.7 * p / (i + 1)));
  const Products product = products_of(
      s.rows, n, s.dim, [&](int r, int k) { return x(r, k); },
      [&](int k, int c) { return w(c, k); });
  for (int r = 0; r < s.rows; ++r)
    for (int c = 0; c < n; ++c) {
      y.want(r, c) = product.sum(r, c);
      y.error(r, c) = product_error<T>(s.dim, product.size(r, c), precision);
    }
  for (int r = 0; r < s.rows; ++r)
    for (int c = 0; c < s.turned * s.head_dim; ++c)
      if (c % s.head_dim < half) {
        double &low = y.want(r, c), &high = y.want(r, c + half);
        const double a = low, b = high, cosine = cos(r % s.seq, c % s.head_dim),
                     sine = sin(r % s.seq, c % s.head_dim);
        low = a * cosine - b * sine, high = b * cosine + a * sine;
        // An element comes from two that were rounded before.
        double &low_error = y.error(r, c), &high_error = y.error(r, c + half);
        const double a_error = low_error + rounding_error<T>(a) + sum_error(2, std::abs(a));
        const double b_error = high_error + rounding_error<T>(b) + sum_error(2, std::abs(b));
        low_error = a_error * std::abs(cosine) + b_error * std::abs(sine);
        high_error = b_error * std::abs(cosine) + a_error * std::abs(sine);
      }
  t.run(QkvArgs<T>{.x = x,
                   .w = w,
                   .y = y,
                   .cos = cos,
                   .sin = sin,
                   .head_dim = s.head_dim,
                   .turned = s.turned * s.head_dim,
                   .seq = s.seq,
                   .precision = precision});
}

// Rows, columns of x, heads, head width: keys and values are a quarter each, and sequences as long
// as a third of the rows, so that tiles begin anywhere in one.
const bool qkv = kernel_test<4>(
    "Qkv",
    {.small = {{1, 1, 3, 64},
               {0, 8, 3, 64},
               {5, 0, 3, 64},
               {64, 64, 3, 64},
               {65, 40, 4, 64},
               {66, 41, 3, 128},
               {130, 72, 5, 64},
               {66, 72, 3, 128},
               {129, 136, 4, 128}},
     .large = {{300, 200, 12, 64}, {257, 72, 8, 128}},
     .many_tiles = {{8136, 72, 14, 64}}},
    [](auto& t, int rows, int dim, int heads, int head_dim) {
      check_qkv(t, {rows, dim, heads, heads - heads / 4 - 1, head_dim, std::max(1, rows / 3)});
    },
    {DType::f32, DType::bf16});

// None, and all; one sequence longer than there are rows, and one row per sequence.
const bool turned =
    kernel_test<4>("QkvTurned", {.small = {{40, 2, 0, 40}, {40, 2, 2, 64}, {40, 3, 3, 1}}},
                   [](auto& t, int rows, int heads, int turned, int seq) {
                     check_qkv(t, {rows, 24, heads, turned, 64, seq});
                   },
                   {DType::f32, DType::bf16});

const bool tf32 =
    kernel_test<2>("QkvTf32", {.small = {{65, 64}, {40, 128}}},
                   [](auto& t, int rows, int head_dim) {
                     check_qkv(t, {rows, 40, 4, 3, head_dim, 17}, DotPrecision::kTf32);
                   },
                   {DType::f32});

// A tile must hold whole heads, of a width that its threads can turn.
TEST(Qkv, FitsOnlyWholeHeads) {
  const Kernel& kernel = kernel_registry().get("qkv", DType::f32, Target::cpu);
  const auto fits = [&](int head_dim, int turned) {
    const QkvArgs<float> args{.x = {},
                              .w = {},
                              .y = {},
                              .cos = {},
                              .sin = {},
                              .head_dim = head_dim,
                              .turned = turned,
                              .seq = 1};
    return !kernel.fitting(&args, 0).empty();
  };
  EXPECT_TRUE(fits(64, 192));
  EXPECT_TRUE(fits(128, 256));
  EXPECT_FALSE(fits(64, 96));
  for (const int head_dim : {16, 32, 80, 96, 192, 256}) EXPECT_FALSE(fits(head_dim, head_dim));
}

}  // namespace
}  // namespace cria::test
