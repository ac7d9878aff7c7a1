// Sums and maxima of whole tiles, rows and columns; transposes.
#define CRIA_TARGET_CPU 1
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tile/host_program.h"

namespace cria::tile {
namespace {

using test::Bare;
using test::random_values;
using test::with_program;

// Reduces a rows x cols block, lazy and eager, cut to n columns, against double.
template <int Rows, int Cols, class K = Bare<>>
void expect_reductions(int rows, int cols) {
  with_program<K>([&](auto& p) {
    const std::vector<float> x = random_values(Rows * Cols, Rows * Cols + cols);
    auto i = column(p.arange(shape<Rows>));
    auto k = row(p.arange(shape<Cols>));
    auto lazy = p.load(x.data(), i * Cols + k, i < rows && k < cols) * 2.f;
    auto eager = p.keep(lazy);
    auto value = [&](int r, int c) {
      return r < rows && c < cols ? double{x[r * Cols + c]} * 2 : 0.0;
    };
    double sum = 0, top = -1e300;
    std::vector<double> row_sum(Rows), row_top(Rows, -1e300), col_sum(Cols), col_top(Cols, -1e300);
    for (int r = 0; r < Rows; ++r)
      for (int c = 0; c < Cols; ++c) {
        const double v = value(r, c);
        sum += v, top = std::max(top, v);
        row_sum[r] += v, row_top[r] = std::max(row_top[r], v);
        col_sum[c] += v, col_top[c] = std::max(col_top[c], v);
      }
    const double tolerance = 1e-6 * Rows * Cols;
    for (int eager_too = 0; eager_too < 2; ++eager_too) {
      auto check = [&](const auto& t) {
        EXPECT_NEAR(p.sum(t), sum, tolerance);
        EXPECT_EQ(p.max(t), static_cast<float>(top));
        auto rs = p.sum(t, axis<1>);
        auto rm = p.max(t, axis<1>);
        auto cs = p.sum(t, axis<0>);
        auto cm = p.max(t, axis<0>);
        auto part = p.partial_sum(t, axis<1>);
        p.combine(part);
        for (int r = 0; r < Rows; ++r) {
          ASSERT_NEAR(rs.v[r], row_sum[r], 1e-6 * Cols);
          ASSERT_NEAR(part.v[r], row_sum[r], 1e-6 * Cols);
          ASSERT_EQ(rm.v[r], static_cast<float>(row_top[r]));
        }
        for (int c = 0; c < Cols; ++c) {
          ASSERT_NEAR(cs.v[c], col_sum[c], 1e-6 * Rows);
          ASSERT_EQ(cm.v[c], static_cast<float>(col_top[c]));
        }
      };
      if (eager_too)
        check(eager);
      else
        check(lazy);
    }
  });
}

TEST(CpuReduce, AllShapesAndCuts) {
  expect_reductions<1, 128>(1, 128);
  expect_reductions<1, 4096>(1, 4096);
  for (int n : {0, 1, 15, 16, 63, 64, 65, 4095}) expect_reductions<1, 4096>(1, n);
  for (int m : {0, 1, 31, 32})
    for (int n : {0, 1, 47, 64}) expect_reductions<32, 64>(m, n);
  expect_reductions<64, 32>(64, 31);
  expect_reductions<8, 16>(8, 16);
  expect_reductions<16, 8, Bare<float, 32>>(15, 7);
}

// Pieces of long rows are reduced side by side, in the order of rows by themselves.
TEST(CpuReduce, WhereRowsLieDoesNotShow) {
  constexpr int kRows = 12, kCols = 1024, kLong = 3000;
  with_program([](auto& p) {
    const std::vector<float> pieces = random_values(kRows * kLong, 5);
    std::vector<float> rows(kRows * kCols);
    for (int r = 0; r < kRows; ++r)
      std::copy_n(pieces.begin() + r * kLong, kCols, rows.begin() + r * kCols);
    auto i = column(p.arange(shape<kRows>));
    auto k = row(p.arange(shape<kCols>));
    for (const int valid_rows : {12, 9, 3})
      for (const int valid_cols : {1024, 1000, 64, 7}) {
        const Mask inside = i < valid_rows && k < valid_cols;
        const auto apart = p.load(pieces.data(), i * kLong + k, inside) * 3.f;
        const auto together = p.load(rows.data(), i * kCols + k, inside) * 3.f;
        auto sums = p.sum(apart, axis<1>), tops = p.max(apart, axis<1>);
        auto want_sums = p.sum(together, axis<1>), want_tops = p.max(together, axis<1>);
        for (int r = 0; r < kRows; ++r) {
          ASSERT_EQ(sums.v[r], want_sums.v[r]) << r << " of " << valid_rows << ", " << valid_cols;
          ASSERT_EQ(tops.v[r], want_tops.v[r]) << r << " of " << valid_rows << ", " << valid_cols;
        }
      }
  });
}

TEST(CpuReduce, MaximumPassesOverNaNAndKeepsInfinity) {
  with_program([](auto& p) {
    std::vector<float> x(256, -5.f);
    x[17] = NAN, x[100] = -2.f;
    auto i = p.arange(shape<256>);
    EXPECT_EQ(p.max(p.load(x.data(), i)), -2.f);
    EXPECT_EQ(p.max(p.load(x.data(), i, i < 0, -INFINITY)), -INFINITY);
    x[3] = INFINITY;
    EXPECT_EQ(p.max(p.load(x.data(), i)), INFINITY);
  });
}

TEST(CpuReduce, LongSumsStayAccurate) {
  with_program([](auto& p) {
    std::vector<float> x(8192, 0.1f);
    auto i = p.arange(shape<8192>);
    EXPECT_NEAR(p.sum(p.load(x.data(), i)), 8192 * double{0.1f}, 2e-3);
  });
}

template <int Rows, int Cols>
void expect_transpose() {
  with_program<Bare<float, 32>>([](auto& p) {
    const std::vector<float> x = random_values(Rows * Cols, Rows + Cols);
    auto tile = p.load(x.data(), column(p.arange(shape<Rows>)) * Cols + row(p.arange(shape<Cols>)));
    auto t = p.trans(tile);
    auto padded = p.trans(p.keep(tile), pad<4>);
    static_assert(decltype(t)::rows == Cols && decltype(t)::cols == Rows);
    for (int r = 0; r < Rows; ++r)
      for (int c = 0; c < Cols; ++c) {
        ASSERT_EQ(t.v[c * Rows + r], x[r * Cols + c]);
        ASSERT_EQ(padded.v[c * Rows + r], x[r * Cols + c]);
      }
  });
}

TEST(CpuReduce, Transposes) {
  expect_transpose<32, 32>();
  expect_transpose<64, 16>();
  expect_transpose<16, 64>();
  expect_transpose<8, 8>();
  expect_transpose<4, 8>();
}

}  // namespace
}  // namespace cria::tile
