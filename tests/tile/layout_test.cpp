// Layouts are bijections, their slices agree with them, and vectors of registers are vectors of
// columns.
#include "tile/layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace cria::tile {
namespace {

// Every element is held by `copies` (thread, register) pairs, none lies outside.
template <class L>
void expect_covers(int copies) {
  std::vector<int> held(L::rows * L::cols, 0);
  for (int t = 0; t < L::threads; ++t) {
    for (int i = 0; i < L::regs; ++i) {
      const int r = L::row(t, i), c = L::col(t, i);
      ASSERT_TRUE(r >= 0 && r < L::rows && c >= 0 && c < L::cols)
          << "thread " << t << " register " << i << " at (" << r << ", " << c << ")";
      ++held[r * L::cols + c];
    }
  }
  for (int e = 0; e < L::rows * L::cols; ++e)
    ASSERT_EQ(held[e], copies) << "element (" << e / L::cols << ", " << e % L::cols << ")";
}

template <class L>
void expect_vectors() {
  for (int t = 0; t < L::threads; ++t)
    for (int i = 0; i < L::regs; ++i) {
      const int first = i / L::vec * L::vec;
      ASSERT_EQ(L::row(t, i), L::row(t, first));
      ASSERT_EQ(L::col(t, i), L::col(t, first) + i - first);
    }
}

// Register i of the tile meets register row_reg(i) of its row slice at the same row, and likewise
// down.
template <class L>
void expect_slices() {
  using R = typename L::Row;
  using C = typename L::Col;
  static_assert(R::rows == L::rows && C::cols == L::cols && R::threads == L::threads);
  for (int t = 0; t < L::threads; ++t)
    for (int i = 0; i < L::regs; ++i) {
      ASSERT_LT(L::row_reg(i), R::regs);
      ASSERT_LT(L::col_reg(i), C::regs);
      ASSERT_EQ(R::row(t, L::row_reg(i)), L::row(t, i));
      ASSERT_EQ(C::col(t, L::col_reg(i)), L::col(t, i));
    }
}

// Lanes that a row reduction combines (neighbours, `across` of them) share their rows.
template <class L>
void expect_rows_shared() {
  using R = typename L::Row;
  for (int t = 0; t < R::threads; ++t)
    for (int i = 0; i < R::regs; ++i) ASSERT_EQ(R::row(t, i), R::row(t / R::across * R::across, i));
}

template <class L>
void expect_layout() {
  expect_covers<L>(1);
  expect_vectors<L>();
  expect_slices<L>();
  expect_rows_shared<L>();
  expect_covers<typename L::Row>(L::Row::regs * L::threads / L::rows);
  expect_covers<typename L::Col>(L::Col::regs * L::threads / L::cols);
}

TEST(Layout, BlockedIsABijection) {
  expect_layout<Blocked<1, 4096, 4, 256>>();
  expect_layout<Blocked<1, 4096, 8, 512>>();
  expect_layout<Blocked<1, 256, 1, 256>>();
  expect_layout<Blocked<64, 64, 4, 256>>();
  expect_layout<Blocked<32, 32, 1, 256>>();
  expect_layout<Blocked<8, 512, 4, 64>>();
  expect_layout<Blocked<128, 16, 8, 128>>();
  expect_layout<Blocked<16, 8, 8, 16>>();
}

TEST(Layout, RunsIsABijection) {
  expect_layout<Runs<4096, 256>>();
  expect_layout<Runs<128, 128>>();
}

TEST(Layout, MmaIsABijection) {
  expect_layout<Mma<16, 8, 1>>();
  expect_layout<Mma<64, 64, 4>>();
  expect_layout<Mma<128, 64, 4>>();
  expect_layout<Mma<128, 192, 8>>();
  expect_layout<Mma<64, 72, 4>>();
}

TEST(Layout, MmaRegistersFollowFromTheirSlices) {
  using L = Mma<128, 192, 4>;
  for (int i = 0; i < L::regs; ++i) EXPECT_EQ(L::reg(L::row_reg(i), L::col_reg(i)), i);
  for (int t : {0, 1, 37, 127})  // columns 32 apart, in one thread
    for (int i = 0; i < L::regs; ++i)
      if (L::col(t, i) < 160) {
        const int partner = L::reg(L::row_reg(i), L::col_reg(i) + pair_distance<L, 32>());
        EXPECT_EQ(L::row(t, partner), L::row(t, i));
        EXPECT_EQ(L::col(t, partner), L::col(t, i) + 32);
      }
}

TEST(Layout, WidestVectorGivesALayoutThatExists) {
  EXPECT_EQ((widest_vector<1, 4096, 256>(4)), 4);
  EXPECT_EQ((widest_vector<1, 4096, 256>(8)), 8);
  EXPECT_EQ((widest_vector<1, 512, 256>(8)), 2);
  EXPECT_EQ((widest_vector<1, 256, 256>(8)), 1);
  EXPECT_EQ((widest_vector<32, 32, 256>(8)), 4);
  expect_layout<Blocked<32, 32, widest_vector<32, 32, 256>(8), 256>>();
}

TEST(Layout, BroadcastPicksTheFullTile) {
  using L = Mma<64, 64, 4>;
  static_assert(std::is_same_v<Broadcast<L, L>::type, L>);
  static_assert(std::is_same_v<Broadcast<L, Scalar>::type, L>);
  static_assert(std::is_same_v<Broadcast<Scalar, L>::type, L>);
  static_assert(std::is_same_v<Broadcast<L, L::Row>::type, L>);
  static_assert(std::is_same_v<Broadcast<L::Col, L>::type, L>);
  static_assert(std::is_same_v<Broadcast<L::Row, Scalar>::type, L::Row>);
}

}  // namespace
}  // namespace cria::tile
