// Reductions. g++ does not reorder float sums, so the order is spelled out: several independent
// vectors of partial results, then one fold.
#pragma once

#include "tile/cpu/expr.h"
#include "tile/cpu/vector.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

struct Add {
  static constexpr float identity = 0.f;
  template <class V>
  CRIA_FN V operator()(V a, V b) const {
    return a + b;
  }
};
// A NaN in `a` is passed over, as by a GPU's fmax.
struct Max {
  static constexpr float identity = -kInfinity;
  template <class V>
  CRIA_FN V operator()(V a, V b) const {
    return a > b ? a : b;
  }
};

// Partial results of a reduction: as many on every instruction set, so that sums agree between
// them.
inline constexpr int kPartials = 64;

template <class Op>
CRIA_FN float reduce_array(const float* x, int n, Op op) {
  constexpr int kVectors = kPartials / kLanes;
  float result = Op::identity;
  int i = 0;
  if (n >= kLanes) {
    Vector<kLanes> acc[kVectors];
    for (auto& a : acc) a = Vector<kLanes>{} + Op::identity;
    for (; i + kPartials <= n; i += kPartials)
      for (int k = 0; k < kVectors; ++k)
        acc[k] = op(load_vector<kLanes>(x + i + k * kLanes), acc[k]);
    for (int k = 0; i + kLanes <= n; ++k, i += kLanes)
      acc[k] = op(load_vector<kLanes>(x + i), acc[k]);
    for (int half = kVectors / 2; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) acc[k] = op(acc[k], acc[k + half]);
    result = fold<kLanes>(acc[0], op);
  }
  for (; i < n; ++i) result = op(x[i], result);
  return result;
}

// Adds row r of an expression, from a column on, to kPartials partial results; inner loops the
// compiler vectorises.
template <class Op, class X>
CRIA_FN void accumulate_row(const X& x, const Extent& extent, int r, Op op,
                            float (&partial)[kPartials], int from = 0) {
  each_run(extent, r, X::Layout::cols, [&](auto region, int begin, int end) {
    constexpr Region R = decltype(region)::value;
    for (begin = begin < from ? from : begin; begin + kPartials <= end; begin += kPartials) {
#pragma GCC ivdep
      for (int k = 0; k < kPartials; ++k)
        partial[k] = op(static_cast<float>(x.template at<R>(r, begin + k)), partial[k]);
    }
#pragma GCC ivdep
    for (int k = 0; k < end - begin; ++k)
      partial[k] = op(static_cast<float>(x.template at<R>(r, begin + k)), partial[k]);
  });
}

// Rows r, r + 1, ... side by side, for pieces of long rows: what the rows share stays in the first
// cache, and memory is read in as many streams instead of starting anew with each piece.
template <int Rows, class Op, class X>
CRIA_FN void reduce_side_by_side(const X& x, const Extent& extent, int r, Op op, float* out) {
  alignas(64) float partial[Rows][kPartials];
  for (auto& row : partial)
    for (float& p : row) p = Op::identity;
  const int whole = min_of(extent.in_cols, X::Layout::cols) / kPartials * kPartials;
  for (int c = 0; c < whole; c += kPartials)
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
#pragma GCC ivdep
      for (int k = 0; k < kPartials; ++k)
        partial[i][k] =
            op(static_cast<float>(x.template at<Region::kInside>(r + i, c + k)), partial[i][k]);
    }
  for (int i = 0; i < Rows; ++i) {
    accumulate_row(x, extent, r + i, op, partial[i], whole);
    out[i] = reduce_array(partial[i], kPartials, op);
  }
}

template <class X>
inline constexpr bool is_float_array = false;
template <class L>
inline constexpr bool is_float_array<Tile<float, L>> = true;

template <class Op, class X>
CRIA_FN float reduce_all(const X& x, Op op) {
  using L = typename X::Layout;
  if constexpr (is_float_array<X>) {
    return reduce_array(x.v, L::rows * L::cols, op);
  } else {
    const Extent extent = x.extent();
    alignas(64) float partial[kPartials];
    for (float& p : partial) p = Op::identity;
    for (int r = 0; r < L::rows; ++r) accumulate_row(x, extent, r, op, partial);
    return reduce_array(partial, kPartials, op);
  }
}

template <class Op, class X>
CRIA_FN auto reduce_rows(const X& x, Op op) {
  using L = typename X::Layout;
  Tile<float, typename L::Row> out;
  const Extent extent = x.extent();
  int r = 0;
  if constexpr (L::rows >= 4 && L::cols >= 8 * kPartials) {
    constexpr int together = min_of(L::rows, 8);
    if (rows_apart(x))
      for (; r + together <= min_of(extent.in_rows, L::rows); r += together)
        reduce_side_by_side<together>(x, extent, r, op, out.v + r);
  }
  for (; r < L::rows; ++r) {
    if constexpr (is_float_array<X>) {
      out.v[r] = reduce_array(x.v + r * L::cols, L::cols, op);
    } else {
      alignas(64) float partial[kPartials];
      for (float& p : partial) p = Op::identity;
      accumulate_row(x, extent, r, op, partial);
      out.v[r] = reduce_array(partial, kPartials, op);
    }
  }
  return out;
}

// Down the columns the compiler vectorises by itself: rows are added elementwise.
template <class Op, class X>
CRIA_FN auto reduce_cols(const X& x, Op op) {
  using L = typename X::Layout;
  Tile<float, typename L::Col> out;
  for (float& v : out.v) v = Op::identity;
  const Extent extent = x.extent();
  for (int r = 0; r < L::rows; ++r) {
    each_run(extent, r, L::cols, [&](auto region, int begin, int end) {
#pragma GCC ivdep
      for (int c = begin; c < end; ++c)
        out.v[c] = op(static_cast<float>(x.template at<decltype(region)::value>(r, c)), out.v[c]);
    });
  }
  return out;
}

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
