// Layouts: compile-time bijections (thread, register) -> (row, column) of a tile.
// The GPU keeps a tile in registers by this map, the tracer evaluates the very same map, the CPU
// needs only the shape. `vec` consecutive registers always hold `vec` consecutive columns.
#pragma once

#include "tile/shape.h"

namespace cria::tile {

// One value per row of a tile, held by each of the `across` neighbouring threads that share the
// row.
template <int Rows, int Threads, int Across>
struct BlockedRows {
  static constexpr int rows = Rows, cols = 1, threads = Threads, vec = 1, across = Across;
  static constexpr int thread_rows = Threads / Across, regs = Rows / thread_rows;
  static constexpr int row(int t, int i) { return i * thread_rows + t / Across; }
  static constexpr int col(int, int) { return 0; }
  static constexpr int row_reg(int i) { return i; }
};

// One value per column of a tile, held by every thread that owns a piece of that column.
template <int Cols, int Vec, int Threads, int Across>
struct BlockedCols {
  static constexpr int rows = 1, cols = Cols, threads = Threads, vec = Vec, across = Across;
  static constexpr int regs = Cols / Across;
  static constexpr int row(int, int) { return 0; }
  static constexpr int col(int t, int i) { return (i / Vec * Across + t % Across) * Vec + i % Vec; }
  static constexpr int col_reg(int i) { return i; }
};

// Rows x Cols, threads laid row by row, each owning `Vec` consecutive columns at a time: coalesced.
template <int Rows, int Cols, int Vec, int Threads>
struct Blocked {
  static_assert(Cols % Vec == 0, "Blocked: the vector width must divide the tile's columns");
  static_assert((Rows * Cols) % (Vec * Threads) == 0,
                "Blocked: the tile's elements must divide evenly among its threads");
  static constexpr int rows = Rows, cols = Cols, vec = Vec, threads = Threads;
  static constexpr int across = min_of(Threads, Cols / Vec), down = Threads / across;
  static_assert(Threads % across == 0 && Rows % down == 0 && Cols % (across * Vec) == 0,
                "Blocked: threads must tile the rows and columns evenly");
  static constexpr int regs = Rows * Cols / Threads, row_regs = Cols / across;
  static constexpr int row(int t, int i) { return i / row_regs * down + t / across; }
  static constexpr int col(int t, int i) {
    return (i % row_regs / Vec * across + t % across) * Vec + i % Vec;
  }
  static constexpr int row_reg(int i) { return i / row_regs; }
  static constexpr int col_reg(int i) { return i % row_regs; }
  using Row = BlockedRows<Rows, Threads, across>;
  using Col = BlockedCols<Cols, Vec, Threads, across>;
};

// 1 x Cols where each thread owns one contiguous run and walks it element by element: what
// coalescing is not. Kept for the ladders and the tracer's lessons.
template <int Cols, int Threads>
struct Runs {
  static_assert(Cols % Threads == 0, "Runs: the columns must divide evenly among the threads");
  static constexpr int rows = 1, cols = Cols, vec = 1, threads = Threads, regs = Cols / Threads;
  static constexpr int across = Threads, down = 1;
  static constexpr int row(int, int) { return 0; }
  static constexpr int col(int t, int i) { return t * regs + i; }
  static constexpr int row_reg(int) { return 0; }
  static constexpr int col_reg(int i) { return i; }
  using Row = BlockedRows<1, Threads, Threads>;
  using Col = Runs;
};

// One value per row of an Mma tile; four neighbouring lanes share it.
template <int Rows, int Warps>
struct MmaRows {
  static constexpr int rows = Rows, cols = 1, threads = Warps * 32, vec = 1, across = 4;
  static constexpr int regs = Rows / (16 * Warps) * 2;
  static constexpr int row(int t, int i) {
    return (i / 2 * Warps + t / 32) * 16 + t % 32 / 4 + i % 2 * 8;
  }
  static constexpr int col(int, int) { return 0; }
  static constexpr int row_reg(int i) { return i; }
};

// One value per column of an Mma tile; all warps and eight lanes of each share it.
template <int Cols, int Warps>
struct MmaCols {
  static constexpr int rows = 1, cols = Cols, threads = Warps * 32, vec = 2, across = 4;
  static constexpr int regs = Cols / 4;
  static constexpr int row(int, int) { return 0; }
  static constexpr int col(int t, int i) { return i / 2 * 8 + t % 4 * 2 + i % 2; }
  static constexpr int col_reg(int i) { return i; }
};

// The accumulator of mma.sync and of wgmma, and, packed to 16 bits, their register operand A.
template <int Rows, int Cols, int Warps>
struct Mma {
  static_assert(Rows % (16 * Warps) == 0, "Mma: every warp owns whole 16-row strips of the tile");
  static_assert(Cols % 8 == 0, "Mma: columns come in groups of 8");
  static constexpr int rows = Rows, cols = Cols, vec = 2, warps = Warps, threads = Warps * 32;
  static constexpr int strips = Rows / (16 * Warps), groups = Cols / 8, regs = strips * groups * 4;
  static constexpr int row(int t, int i) {
    return (i / (4 * groups) * Warps + t / 32) * 16 + t % 32 / 4 + i % 4 / 2 * 8;
  }
  static constexpr int col(int t, int i) { return i / 4 % groups * 8 + t % 4 * 2 + i % 2; }
  static constexpr int row_reg(int i) { return i / (4 * groups) * 2 + i % 4 / 2; }
  static constexpr int col_reg(int i) { return i / 4 % groups * 2 + i % 2; }
  static constexpr int reg(int row_reg, int col_reg) {
    return (row_reg / 2 * groups + col_reg / 2) * 4 + row_reg % 2 * 2 + col_reg % 2;
  }
  using Row = MmaRows<Rows, Warps>;
  using Col = MmaCols<Cols, Warps>;
};

// A shared tile is panels of 128-byte rows, each of eight 16-byte chunks. Chunk k of row r lies at
// place k ^ r % 8 of it, so that neither rows nor columns of chunks meet in a bank.
constexpr int swizzled(int r, int k) { return r * 128 + (k ^ r % 8) * 16; }

// Registers of a row from a column to the one N further on, in tiles whose columns c and c + N of
// every 2 N lie in one thread.
template <class L, int N>
constexpr int pair_distance() {
  static_assert(
      requires { L::reg(0, 0); } && N % 8 == 0 && L::cols % (2 * N) == 0,
      "pairs<N>: one thread holds both columns of a pair only in an accumulator, if N is a "
      "multiple of 8 and 2 N divides its columns");
  return N / 4;
}

// The layout of a tile, and those of one value per row or column of it: p.load(cols_of(x), ...)
// broadcasts over x's rows.
template <class X>
constexpr typename X::Layout layout_of(const X&) {
  return {};
}
template <class X>
constexpr typename X::Layout::Row rows_of(const X&) {
  return {};
}
template <class X>
constexpr typename X::Layout::Col cols_of(const X&) {
  return {};
}

// The widest vector, at most `wish`, with which a Blocked layout of this shape exists.
template <int Rows, int Cols, int Threads>
constexpr int widest_vector(int wish) {
  while (wish > 1 && ((Rows * Cols) % (wish * Threads) != 0 || Cols % wish != 0 ||
                      (Cols / wish < Threads && Threads % (Cols / wish) != 0)))
    wish /= 2;
  return wish;
}

// Elements that one access reads of a staged transpose whose rows are `stride` 4-byte words apart:
// a whole vector where rows keep 16-byte alignment, else one.
template <class Out>
constexpr int staged_width(int stride) {
  const int wide = min_of(Out::vec, 4);
  return stride % wide == 0 ? wide : 1;
}

// How two operands of an elementwise operation meet: equal layouts, or a row/column slice of the
// other.
struct Scalar {};
template <class A, class B>
struct Broadcast {
  template <class L, class S>
  static constexpr bool slices() {
    if constexpr (requires { typename L::Row; })
      return __is_same(typename L::Row, S) || __is_same(typename L::Col, S);
    else
      return false;
  }
  template <class X, class Y>
  static auto pick() {
    if constexpr (__is_same(X, Y) || __is_same(Y, Scalar))
      return X{};
    else if constexpr (__is_same(X, Scalar))
      return Y{};
    else if constexpr (slices<X, Y>())
      return X{};
    else {
      static_assert(
          slices<Y, X>(),
          "tile layouts differ: give both tiles one layout, or reduce one to a row or column "
          "of the other");
      return Y{};
    }
  }
  using type = decltype(pick<A, B>());
};

}  // namespace cria::tile
