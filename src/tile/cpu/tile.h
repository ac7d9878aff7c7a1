// Tiles on the CPU. A program holds the whole tile: an eager tile is a row-major array, a lazy one
// an expression over memory and small by-value slices (expr.h). Layouts only give shapes.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tile/cpu/math.h"
#include "tile/layout.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

inline constexpr bool kOnGpu = false;  // for what only suits a GPU, or only a CPU
// Whether fp32 operands of dot can be multiplied as tf32: the tracer stands for a GPU.
#if defined(CRIA_TARGET_TRACE)
inline constexpr bool kHasTf32 = true;
#else
inline constexpr bool kHasTf32 = false;
#endif

// How an element lies to the loads of an expression: inside all their masks, outside all of them,
// or perhaps inside some. Loops over the inside test nothing.
enum class Region { kInside, kEdge, kOutside };

// The elements (r, c) inside all masks and those inside any.
struct Extent {
  int in_rows = INT32_MAX, in_cols = INT32_MAX, out_rows = 0, out_cols = 0;
  friend CRIA_FN Extent operator&(Extent a, Extent b) {
    return {min_of(a.in_rows, b.in_rows), min_of(a.in_cols, b.in_cols),
            -min_of(-a.out_rows, -b.out_rows), -min_of(-a.out_cols, -b.out_cols)};
  }
};

template <Region R>
using InRegion = std::integral_constant<Region, R>;

// Calls f(InRegion<R>, begin, end) for the runs of columns in row r, left to right.
template <class F>
CRIA_FN void each_run(const Extent& e, int r, int cols, F f) {
  const int inside = r < e.in_rows ? min_of(e.in_cols, cols) : 0;
  f(InRegion<Region::kInside>{}, 0, inside);
  if (inside == cols) return;
  const int edge = r < e.out_rows ? min_of(e.out_cols, cols) : 0;
  if (edge > inside) f(InRegion<Region::kEdge>{}, inside, edge);
  const int rest = edge > inside ? edge : inside;
  if (rest < cols) f(InRegion<Region::kOutside>{}, rest, cols);
}

// Anything that has a value for every element of a tile.
template <class X>
concept Expression = requires(const X& x) {
  typename X::Element;
  typename X::Layout;
  x.extent();
};

template <class E, class L>
struct Tile {
  using Element = E;
  using Layout = L;
  static constexpr int rows = L::rows, cols = L::cols;

  alignas(64) E v[rows * cols];

  Tile() = default;
  template <Expression X>
  CRIA_FN Tile(const X& x) {
    *this = x;
  }
  template <Expression X>
  CRIA_FN Tile& operator=(const X& x) {
    static_assert(std::is_same_v<typename X::Layout, L>,
                  "tile layouts differ: assign a tile of the same layout");
    evaluate(x, v);
    return *this;
  }

  // A row or column slice answers for every column or row of the tile it was reduced from.
  template <Region>
  CRIA_FN E at(int r, int c) const {
    return v[(rows == 1 ? 0 : r * cols) + (cols == 1 ? 0 : c)];
  }
  CRIA_FN Extent extent() const { return {}; }
};

// A float tile rounded to memory type T: the register operand A of dot. Elementwise operations may
// read it.
template <class T, class L>
struct Operand {
  using Element = float;
  using Layout = L;
  static constexpr int rows = L::rows, cols = L::cols;
  alignas(64) float v[rows * cols];

  template <Region>
  CRIA_FN float at(int r, int c) const {
    return v[r * cols + c];
  }
  CRIA_FN Extent extent() const { return {}; }
};

// Writes all elements of an expression, row-major, rows `stride` apart.
template <class X, class E>
CRIA_FN void evaluate(const X& x, E* out, int stride = X::Layout::cols) {
  using L = typename X::Layout;
  const Extent extent = x.extent();
  for (int r = 0; r < L::rows; ++r) {
    E* row = out + r * stride;
    each_run(extent, r, L::cols, [&](auto region, int begin, int end) {
#pragma GCC ivdep
      for (int c = begin; c < end; ++c)
        row[c] = static_cast<E>(x.template at<decltype(region)::value>(r, c));
    });
  }
}

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
