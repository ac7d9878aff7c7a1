#include "kernels/rope.h"

#include <cmath>

#include "kernels/harness.h"
#include "support/differences.h"

namespace cria::test {
namespace {

using namespace kernels;

constexpr double kTheta = 500000;

// One head turned by the angles of one position; direction -1 turns it back.
std::vector<double> turned(const std::vector<double>& x, const std::vector<double>& cos,
                           const std::vector<double>& sin, int direction) {
  const size_t half = x.size() / 2;
  std::vector<double> y(x.size());
  for (size_t i = 0; i < half; ++i) {
    y[i] = x[i] * cos[i] - direction * x[i + half] * sin[i];
    y[i + half] = x[i + half] * cos[i] + direction * x[i] * sin[i];
  }
  return y;
}

struct Layout {
  bool heads_in_rows;  // [B, T, H, K] rather than [B, H, T, K]
  int batch, positions, heads, head_dim, offset;
  // Row and first column of a head in the operand's matrix.
  int row(int b, int t, int h) const {
    return heads_in_rows ? b * positions + t : (b * heads + h) * positions + t;
  }
  int col(int h) const { return heads_in_rows ? h * head_dim : 0; }
  int rows() const { return batch * positions * (heads_in_rows ? 1 : heads); }
  int cols() const { return head_dim * (heads_in_rows ? heads : 1); }
  template <class T>
  Tensor<T> view(T* data) const {
    return heads_in_rows ? heads_of(data, batch, positions, heads, head_dim, heads * head_dim)
                         : batch_of(data, batch * heads, positions, head_dim);
  }
};

template <int Sign, class Case>
void check_rope(Case& t, const Layout& l, const Layout& to, bool in_place) {
  using T = ElementOf<Case>;
  const int half = l.head_dim / 2;
  auto& x = in_place ? t.inout("x", {l.rows(), l.cols()}) : t.input("x", {l.rows(), l.cols()});
  auto& y = in_place ? x : t.output("y", {to.rows(), to.cols()});
  x.set_parts(l.heads_in_rows ? l.heads : 1), y.set_parts(to.heads_in_rows ? to.heads : 1);
  auto& cos = t.fp32_input("cos", {l.positions + l.offset, half});
  auto& sin = t.fp32_input("sin", {l.positions + l.offset, half});
  std::vector<float> cosines((l.positions + l.offset) * half), sines(cosines.size());
  fill_rope_tables(rope_frequencies(kTheta, l.head_dim),
                   matrix_of(cosines.data(), l.positions + l.offset, half),
                   matrix_of(sines.data(), l.positions + l.offset, half));
  for (int p = 0; p < l.positions + l.offset; ++p)
    for (int i = 0; i < half; ++i)
      cos.set(p, i, cosines[p * half + i]), sin.set(p, i, sines[p * half + i]);
  std::vector<double> head(l.head_dim), c(half), s(half);
  for (int b = 0; b < l.batch; ++b)
    for (int p = 0; p < l.positions; ++p)
      for (int h = 0; h < l.heads; ++h) {
        for (int i = 0; i < l.head_dim; ++i) head[i] = x(l.row(b, p, h), l.col(h) + i);
        for (int i = 0; i < half; ++i) c[i] = cos(p + l.offset, i), s[i] = sin(p + l.offset, i);
        const auto want = turned(head, c, s, Sign);
        for (int i = 0; i < l.head_dim; ++i) y.want(to.row(b, p, h), to.col(h) + i) = want[i];
      }
  y.tolerance = {.length = 2, .norm = 6};
  t.run(RopeArgs<T, Sign>{.x = l.view(static_cast<const T*>(x.data())),
                          .cos = cos,
                          .sin = sin,
                          .y = to.view(y.data()),
                          .offset = l.offset});
}

template <int Sign, class Case>
void check_rope(Case& t, const Layout& l, bool in_place) {
  check_rope<Sign>(t, l, l, in_place);
}

// batch, positions, heads, head width
const Sizes<4> kSizes = {.small = {{0, 3, 2, 64},
                                   {1, 0, 2, 64},
                                   {1, 1, 1, 2},
                                   {2, 3, 1, 6},
                                   {2, 5, 3, 64},
                                   {1, 3, 33, 64},
                                   {1, 2, 32, 62},
                                   {2, 3, 8, 128},
                                   {1, 2, 17, 130},
                                   {1, 33, 1, 64},
                                   {1, 17, 1, 72},
                                   {1, 3, 2, 254},
                                   {1, 3, 2, 256},
                                   {1, 2, 9, 258},
                                   {1, 3, 5, 600}},
                         .large = {{2, 100, 12, 64}, {1, 70, 8, 128}}};

const bool forward = kernel_test<4>("RopeForward", kSizes, [](auto& t, int b, int n, int h, int k) {
  check_rope<1>(t, {true, b, n, h, k, 0}, false);
});
const bool in_place =
    kernel_test<4>("RopeForwardInPlace", kSizes, [](auto& t, int b, int n, int h, int k) {
      check_rope<1>(t, {true, b, n, h, k, 0}, true);
    });
const bool apart =
    kernel_test<4>("RopeForwardHeadsApart", kSizes, [](auto& t, int b, int n, int h, int k) {
      check_rope<1>(t, {false, b, n, h, k, 0}, true);
    });
const bool to_apart =
    kernel_test<4>("RopeForwardTakesHeadsApart", kSizes, [](auto& t, int b, int n, int h, int k) {
      check_rope<1>(t, {true, b, n, h, k, 0}, {false, b, n, h, k, 0}, false);
    });
const bool from_apart =
    kernel_test<4>("RopeBackwardJoinsHeads", kSizes, [](auto& t, int b, int n, int h, int k) {
      check_rope<-1>(t, {false, b, n, h, k, 0}, {true, b, n, h, k, 0}, false);
    });
const bool offset = kernel_test<4>("RopeForwardOffset", {.small = {{2, 1, 4, 64}, {1, 3, 2, 128}}},
                                   [](auto& t, int b, int n, int h, int k) {
                                     check_rope<1>(t, {true, b, n, h, k, 7}, false);
                                   });
const bool backward =
    kernel_test<4>("RopeBackward", kSizes, [](auto& t, int b, int n, int h, int k) {
      check_rope<-1>(t, {true, b, n, h, k, 0}, false);
    });

TEST(RopeBackward, ReferenceIsTheDerivative) {
  const std::vector<double> x = {0.5, -1, 2, 0.1, 3, -2}, dy = {1, -2, 0.5, 3, -0.7, 0.2};
  const std::vector<double> cos = {0.8, -0.28, 0.6}, sin = {0.6, 0.96, -0.8};
  expect_gradient(
      x, turned(dy, cos, sin, -1),
      [&](const std::vector<double>& v) {
        double loss = 0;
        const auto y = turned(v, cos, sin, 1);
        for (size_t i = 0; i < v.size(); ++i) loss += dy[i] * y[i];
        return loss;
      },
      "x");
}

TEST(RopeTables, HoldTheAngles) {
  float cos[3 * 2], sin[3 * 2];
  fill_rope_tables(rope_frequencies(100, 4), matrix_of(cos, 3, 2),
                   matrix_of(sin, 3, 2));  // 1, 1/10
  for (int t = 0; t < 3; ++t) {
    EXPECT_FLOAT_EQ(cos[2 * t], std::cos(double(t)));
    EXPECT_FLOAT_EQ(sin[2 * t], std::sin(double(t)));
    EXPECT_FLOAT_EQ(cos[2 * t + 1], std::cos(t / 10.0));
    EXPECT_FLOAT_EQ(sin[2 * t + 1], std::sin(t / 10.0));
  }
}

}  // namespace
}  // namespace cria::test
