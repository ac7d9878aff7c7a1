// Elementwise operations: every operator and function through tiles, what is lazy and what is not.
#define CRIA_TARGET_CPU 1
#include <gtest/gtest.h>

#include <cmath>

#include "tile/host_program.h"

namespace cria::tile {
namespace {

using test::random_values;
using test::with_program;

constexpr int kN = 256;

TEST(CpuElementwise, LaziesFollowTheRule) {
  with_program([](auto& p) {
    std::vector<float> x = random_values(64 * 64, 1);
    auto cols = row(p.arange(shape<64>));
    auto rows = column(p.arange(shape<64>));
    auto lazy = p.load(x.data(), rows * 64 + cols);
    auto eager = p.keep(lazy);
    auto slice = p.sum(lazy, axis<1>);
    static_assert(is_lazy<decltype(lazy)> && is_full<decltype(eager)>);
    static_assert(is_eager<decltype(slice)> && !is_full<decltype(slice)>);
    static_assert(is_lazy<decltype(lazy * 2.f)>);
    static_assert(is_lazy<decltype(lazy + lazy)>);
    static_assert(is_lazy<decltype(exp(lazy - slice))>);
    static_assert(is_full<decltype(lazy + eager)>);
    static_assert(is_full<decltype(eager * slice)>);
    static_assert(is_eager<decltype(slice * 2.f + slice)>);
    static_assert(is_lazy<decltype(p.where(Mask{1, 1}, lazy, 0.f))>);
    static_assert(is_full<decltype(p.where(Mask{1, 1}, eager, 0.f))>);
  });
}

TEST(CpuElementwise, LazyNodesHoldValuesNotVariables) {
  with_program([](auto& p) {
    std::vector<float> x = random_values(64 * 64, 2), y(64 * 64);
    auto cols = row(p.arange(shape<64>));
    auto rows = column(p.arange(shape<64>));
    auto at = rows * 64 + cols;
    auto slice = p.full_rows(p.zeros(shape<64, 64>), 3.f);
    auto lazy = p.load(x.data(), at) * slice;
    slice = p.full_rows(p.zeros(shape<64, 64>), 100.f);
    p.store(y.data(), at, lazy);
    for (int i = 0; i < 64 * 64; ++i) ASSERT_EQ(y[i], x[i] * 3.f) << i;
  });
}

TEST(CpuElementwise, KeepTakesTheValuesNow) {
  with_program([](auto& p) {
    std::vector<float> x(kN, 1.f), y(kN), z(kN);
    auto i = p.arange(shape<kN>);
    auto lazy = p.load(x.data(), i);
    auto kept = p.keep(lazy);
    for (float& v : x) v = 2.f;
    p.store(y.data(), i, kept);
    p.store(z.data(), i, lazy);
    EXPECT_EQ(y[7], 1.f);
    EXPECT_EQ(z[7], 2.f);
  });
}

TEST(CpuElementwise, EagerTilesAreValues) {
  with_program([](auto& p) {
    auto a = p.full(shape<kN>, 2.f);
    auto b = a * 3.f;
    a += 1.f;
    auto c = a + b;
    b -= a;
    EXPECT_EQ(a.v[5], 3.f);
    EXPECT_EQ(b.v[5], 3.f);
    EXPECT_EQ(c.v[5], 9.f);
    a = c;
    c /= 3.f;
    EXPECT_EQ(a.v[kN - 1], 9.f);
    EXPECT_EQ(c.v[kN - 1], 3.f);
    update(
        a, [](float x, float y) { return x - y; }, c);
    EXPECT_EQ(a.v[0], 6.f);
    a = p.load(c.v, p.arange(shape<kN>)) * 2.f;  // a lazy expression assigned to a tile
    EXPECT_EQ(a.v[9], 6.f);
  });
}

// Each operation on lazy and on eager operands, element by element against the scalar.
template <class Tiled, class Scalar>
void expect_unary(Tiled tiled, Scalar scalar, float low, float high) {
  with_program([&](auto& p) {
    std::vector<float> x = random_values(kN, 3), y(kN), z(kN);
    for (float& v : x) v = low + (v + 1) / 2 * (high - low);
    auto i = p.arange(shape<kN>);
    auto loaded = p.load(x.data(), i);
    p.store(y.data(), i, tiled(loaded));
    p.store(z.data(), i, tiled(p.keep(loaded)));
    for (int e = 0; e < kN; ++e) {
      ASSERT_NEAR(y[e], scalar(x[e]), 4e-7 * std::abs(scalar(x[e])) + 1e-7) << x[e];
      ASSERT_EQ(z[e], y[e]) << x[e];
    }
  });
}

TEST(CpuElementwise, Functions) {
  auto name = [](auto f) { return f; };
  expect_unary(
      name([](auto x) { return abs(x); }), [](double x) { return std::abs(x); }, -3, 3);
  expect_unary(
      name([](auto x) { return -x; }), [](double x) { return -x; }, -3, 3);
  expect_unary(
      name([](auto x) { return exp(x); }), [](double x) { return std::exp(x); }, -20, 20);
  expect_unary(
      name([](auto x) { return exp2(x); }), [](double x) { return std::exp2(x); }, -20, 20);
  expect_unary(
      name([](auto x) { return log(x); }), [](double x) { return std::log(x); }, 0.1f, 99);
  expect_unary(
      name([](auto x) { return log2(x); }), [](double x) { return std::log2(x); }, 0.1f, 99);
  expect_unary(
      name([](auto x) { return sqrt(x); }), [](double x) { return std::sqrt(x); }, 0, 99);
  expect_unary(
      name([](auto x) { return rsqrt(x); }), [](double x) { return 1 / std::sqrt(x); }, 0.1f, 9);
  expect_unary(
      name([](auto x) { return sin(x); }), [](double x) { return std::sin(x); }, -50, 50);
  expect_unary(
      name([](auto x) { return cos(x); }), [](double x) { return std::cos(x); }, -50, 50);
  expect_unary(
      name([](auto x) { return tanh(x); }), [](double x) { return std::tanh(x); }, -5, 5);
  expect_unary(
      name([](auto x) { return sigmoid(x); }), [](double x) { return 1 / (1 + std::exp(-x)); }, -9,
      9);
  expect_unary(
      name([](auto x) { return silu(x); }), [](double x) { return x / (1 + std::exp(-x)); }, -9, 9);
}

TEST(CpuElementwise, OperatorsComparisonsAndWhere) {
  with_program([](auto& p) {
    std::vector<float> x = random_values(kN, 4), y = random_values(kN, 5), out(kN);
    auto i = p.arange(shape<kN>);
    auto a = p.load(x.data(), i);
    auto b = p.load(y.data(), i);
    auto check = [&](auto tile, auto want, const char* name) {
      p.store(out.data(), i, tile);
      for (int e = 0; e < kN; ++e) ASSERT_EQ(out[e], want(x[e], y[e])) << name << " at " << e;
    };
    check(
        a + b, [](float u, float v) { return u + v; }, "+");
    check(
        a - b, [](float u, float v) { return u - v; }, "-");
    check(
        a * b, [](float u, float v) { return u * v; }, "*");
    check(
        a / b, [](float u, float v) { return u / v; }, "/");
    check(
        1 - a, [](float u, float) { return 1 - u; }, "1 -");
    check(
        a / 2, [](float u, float) { return u / 2; }, "/ 2");
    check(
        max(a, b), [](float u, float v) { return std::max(u, v); }, "max");
    check(
        min(a, 0.25f), [](float u, float) { return std::min(u, 0.25f); }, "min");
    check(
        where(a < b, a, b), [](float u, float v) { return u < v ? u : v; }, "<");
    check(
        where(a <= b && a > 0.f, 1.f, 0.f), [](float u, float v) { return u <= v && u > 0; }, "&&");
    check(
        where(a >= b || b > 0.5f, 1.f, 0.f), [](float u, float v) { return u >= v || v > .5f; },
        "||");
    check(
        where(p.keep(a != b), a, 0.f), [](float u, float v) { return u != v ? u : 0; }, "!=");
    check(
        where(a == a, 7.f, 0.f), [](float, float) { return 7.f; }, "==");
    check(
        map([](float u, float v, float w) { return u + v * w; }, a, b, 2.f),
        [](float u, float v) { return u + v * 2.f; }, "map");
  });
}

TEST(CpuElementwise, SlicesBroadcastAlongTheirAxis) {
  with_program([](auto& p) {
    std::vector<float> x = random_values(32 * 64, 6), y(32 * 64);
    auto at = column(p.arange(shape<32>)) * 64 + row(p.arange(shape<64>));
    auto tile = p.load(x.data(), at);
    auto rows = p.max(tile, axis<1>);
    auto cols = p.max(tile, axis<0>);
    p.store(y.data(), at, p.keep(tile) - rows + cols * 2.f);
    for (int r = 0; r < 32; ++r)
      for (int c = 0; c < 64; ++c) {
        float row_max = -9, col_max = -9;
        for (int k = 0; k < 64; ++k) row_max = std::max(row_max, x[r * 64 + k]);
        for (int k = 0; k < 32; ++k) col_max = std::max(col_max, x[k * 64 + c]);
        ASSERT_FLOAT_EQ(y[r * 64 + c], x[r * 64 + c] - row_max + col_max * 2.f);
      }
  });
}

TEST(CpuElementwise, OperandsAreReadAsRounded) {
  with_program<test::Bare<bf16>>([](auto& p) {
    std::vector<float> x = random_values(64 * 32, 8), y(64 * 32);
    auto at = column(p.arange(shape<64>)) * 32 + row(p.arange(shape<32>));
    auto tile = p.keep(p.load(Mma<64, 32, 4>{}, x.data(), at));
    auto rounded = p.cast(type<bf16>, tile);
    update(
        tile, [](float u, float v) { return u - v; }, rounded);
    p.store(y.data(), at, map([](float u, float v) { return u + 2 * v; }, tile, rounded));
    for (int e = 0; e < 64 * 32; ++e) {
      const float r = to_float(from_float<bf16>(x[e]));
      ASSERT_EQ(y[e], (x[e] - r) + 2 * r) << e;
    }
  });
}

TEST(CpuElementwise, WhereByPosition) {
  with_program([](auto& p) {
    std::vector<float> x = random_values(32 * 64, 7), y(32 * 64);
    auto rows = column(p.arange(shape<32>));
    auto cols = row(p.arange(shape<64>));
    auto at = rows * 64 + cols;
    auto tile = p.load(x.data(), at);
    for (int shift : {-40, -3, 0, 5, 70}) {
      p.store(y.data(), at, p.where(rows + shift >= cols, tile, -1.f));
      for (int e = 0; e < 32 * 64; ++e)
        ASSERT_EQ(y[e], e / 64 + shift >= e % 64 ? x[e] : -1.f) << shift << " at " << e;
    }
    auto kept = p.keep(tile);
    p.store(y.data(), at, p.where(rows < 5 && cols < 9, kept, -1.f));
    for (int e = 0; e < 32 * 64; ++e) ASSERT_EQ(y[e], e / 64 < 5 && e % 64 < 9 ? x[e] : -1.f) << e;
  });
}

TEST(CpuElementwise, IntegerTiles) {
  with_program<test::Bare<int32_t>>([](auto& p) {
    std::vector<int32_t> x(kN), y(kN);
    for (int e = 0; e < kN; ++e) x[e] = (e << 20) + 1;
    auto i = p.arange(shape<kN>);
    auto a = p.load(x.data(), i);
    p.store(y.data(), i, a + 2);
    for (int e = 0; e < kN; ++e) ASSERT_EQ(y[e], x[e] + 2);  // exact beyond 2^24
  });
}

}  // namespace
}  // namespace cria::tile
