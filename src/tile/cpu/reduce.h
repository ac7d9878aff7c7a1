// Reductions. g++ does not reorder float sums, so explicit vectors do: several independent accumulators,
// then one fold. A lazy expression is first evaluated, a piece at a time, into a buffer that stays in L1.
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

template <class Op>
CRIA_FN float reduce_array(const float* x, int n, Op op) {
  constexpr int kAccumulators = 4, kStep = kAccumulators * kLanes;
  using V = Vector<kLanes>;
  float result = Op::identity;
  int i = 0;
  if (n >= kLanes) {
    V acc[kAccumulators];
    for (auto& a : acc) a = V{} + Op::identity;
    for (; i + kStep <= n; i += kStep)
      for (int k = 0; k < kAccumulators; ++k)
        acc[k] = op(load_vector<kLanes>(x + i + k * kLanes), acc[k]);
    for (; i + kLanes <= n; i += kLanes) acc[0] = op(load_vector<kLanes>(x + i), acc[0]);
    result = fold<kLanes>(op(op(acc[0], acc[1]), op(acc[2], acc[3])), op);
  }
  for (; i < n; ++i) result = op(x[i], result);
  return result;
}

// Row r of an expression, from column `begin` to `end`, as floats in `out`.
template <class X>
CRIA_FN void evaluate_piece(const X& x, const Extent& extent, int r, int begin, int end, float* out) {
  const Extent shifted{extent.in_rows, extent.in_cols - begin > 0 ? extent.in_cols - begin : 0,
                       extent.out_rows, extent.out_cols - begin > 0 ? extent.out_cols - begin : 0};
  each_run(shifted, r, end - begin, [&](auto region, int from, int to) {
#pragma GCC ivdep
    for (int c = from; c < to; ++c)
      out[c] = static_cast<float>(x.template at<decltype(region)::value>(r, begin + c));
  });
}

template <class Op, class X>
CRIA_FN float reduce_row(const X& x, const Extent& extent, int r, Op op) {
  constexpr int kPiece = 512, cols = X::Layout::cols;
  alignas(64) float piece[min_of(cols, kPiece)];
  float result = Op::identity;
  for (int begin = 0; begin < cols; begin += kPiece) {
    const int end = min_of(begin + kPiece, cols);
    evaluate_piece(x, extent, r, begin, end, piece);
    result = op(reduce_array(piece, end - begin, op), result);
  }
  return result;
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
    float result = Op::identity;
    for (int r = 0; r < L::rows; ++r) result = op(reduce_row(x, extent, r, op), result);
    return result;
  }
}

template <class Op, class X>
CRIA_FN auto reduce_rows(const X& x, Op op) {
  using L = typename X::Layout;
  Tile<float, typename L::Row> out;
  const Extent extent = x.extent();
  for (int r = 0; r < L::rows; ++r) {
    if constexpr (is_float_array<X>)
      out.v[r] = reduce_array(x.v + r * L::cols, L::cols, op);
    else
      out.v[r] = reduce_row(x, extent, r, op);
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
