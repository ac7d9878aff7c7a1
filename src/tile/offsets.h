// Offsets and masks as affine types instead of integer tiles: the vector width is known at compile
// time, the CPU gets dense loops and the tracer needs no analysis.
//   auto j = p.arange(shape<N>) + start;         p.load(x, j, j < n)
//   auto i = column(p.arange(shape<M>)), k = row(p.arange(shape<N>));
//   p.load(x, i * ld + k, i < m && k < n)        transposed: i + k * ld
#pragma once

#include <cstdint>

#include "base/tensor.h"
#include "tile/shape.h"

namespace cria::tile {

// Elements (r, c) with r < rows and c < cols of a tile are valid.
struct Mask {
  static constexpr int kAll = 1 << 30;  // more than any tile has
  int rows = kAll, cols = kAll;
  // All of `width` elements from (r, c) on.
  constexpr bool operator()(int r, int c, int width = 1) const {
    return r < rows && c + width <= cols;
  }
  // Whether the edge cuts vectors of `width` elements, a power of two, of a tile so wide.
  constexpr bool cuts(int width, int tile_cols) const {
    return cols > 0 && cols < tile_cols && (cols & (width - 1)) != 0;
  }
  constexpr Mask operator&&(Mask o) const { return {min_of(rows, o.rows), min_of(cols, o.cols)}; }
  // How many of a tile's positions from `start` on lie below n.
  static constexpr int below(int64_t n, int64_t start) {
    return n - start < kAll ? (n - start > 0 ? int(n - start) : 0) : kAll;
  }
};

// Offsets base + r * row_stride + c * col_stride of a Rows x Cols tile; Unit says col_stride is 1.
template <int Rows, int Cols, bool Unit>
struct Offsets {
  static constexpr int rows = Rows, cols = Cols;
  static constexpr bool unit = Unit;
  int64_t base, row_stride, col_stride;
  constexpr int64_t operator()(int r, int c) const {
    return base + r * row_stride + (Unit ? c : c * col_stride);
  }
  constexpr Offsets operator+(int64_t o) const { return {base + o, row_stride, col_stride}; }
};

// start, start + 1, ..., start + N - 1: what arange gives.
template <int N>
struct Range {
  static constexpr int rows = 1, cols = N;
  static constexpr bool unit = true;
  int64_t start = 0;
  constexpr int64_t operator()(int, int c) const { return start + c; }
  constexpr Range operator+(int64_t o) const { return {start + o}; }
  constexpr Offsets<1, N, false> operator*(int64_t stride) const {
    return {start * stride, 0, stride};
  }
  constexpr Mask operator<(int64_t n) const { return {Mask::kAll, Mask::below(n, start)}; }
};
template <int N>
constexpr Range<N> operator+(int64_t o, Range<N> r) {
  return r + o;
}

// A range laid along one axis of a 2-D tile (Triton's r[:, None] and r[None, :]).
template <int N, int A, bool Unit = true>
struct AxisRange {
  int64_t start, stride;
  constexpr AxisRange<N, A, false> operator*(int64_t by) const { return {start * by, stride * by}; }
  constexpr AxisRange operator+(int64_t o) const { return {start + o, stride}; }
  constexpr Mask operator<(int64_t n) const {
    static_assert(Unit, "compare the range itself, before it is multiplied by a stride");
    if constexpr (A == 0)
      return {Mask::below(n, start), Mask::kAll};
    else
      return {Mask::kAll, Mask::below(n, start)};
  }
};
template <int N>
constexpr AxisRange<N, 0> column(Range<N> r) {
  return {r.start, 1};
}
template <int N>
constexpr AxisRange<N, 1> row(Range<N> r) {
  return {r.start, 1};
}
template <int M, int N, bool U0, bool U1>
constexpr Offsets<M, N, U1> operator+(AxisRange<M, 0, U0> i, AxisRange<N, 1, U1> j) {
  return {i.start + j.start, i.stride, j.stride};
}

// column(i) >= row(j): a triangle of the tile (a rectangle where i was multiplied by 0).
// p.where(column(i) >= row(j), x, other) is the causal mask.
struct Triangle {
  int shift, slope;
  constexpr bool operator()(int r, int c) const { return r * slope + shift >= c; }
};
template <int M, int N, bool U>
constexpr Triangle operator>=(AxisRange<M, 0, U> i, AxisRange<N, 1> j) {
  return {int(i.start - j.start), int(i.stride)};
}

// row(j) >= column(i): the other triangle, for tiles whose rows are keys and whose columns are
// queries.
struct UpperTriangle {
  int shift, slope;
  constexpr bool operator()(int r, int c) const { return c * slope + shift >= r; }
};
template <int M, int N, bool U>
constexpr UpperTriangle operator>=(AxisRange<N, 1, U> j, AxisRange<M, 0> i) {
  return {int(j.start - i.start), int(j.stride)};
}

// Two tables of which a tile's rows meet one row each: row r meets row (first + r) % period.
struct PairTables {
  Tensor<const float> x, y;
  int first = 0, period = 1 << 30;
  constexpr int row(int r) const { return (first + r) % period; }
};

// The row-major block at (r0, c0) of a matrix with rows `ld` apart.
template <int M, int N>
constexpr Offsets<M, N, true> block_at(int64_t r0, int64_t c0, int64_t ld) {
  return {r0 * ld + c0, ld, 1};
}

}  // namespace cria::tile
