// Elementwise expressions. An operation is lazy when one of its operands is, and none is a full
// eager tile; lazy nodes hold everything but memory by value, so no later assignment can change
// them. An operation with a full eager tile, or on slices alone, is computed at once.
#pragma once

#include <tuple>

#include "tile/cpu/tile.h"
#include "tile/offsets.h"
#include "tile/operations.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

template <class X>
inline constexpr bool is_eager = false;
template <class E, class L>
inline constexpr bool is_eager<Tile<E, L>> = true;
template <class T, class L>
inline constexpr bool is_eager<Operand<T, L>> = true;
template <class X>
inline constexpr bool is_tile = Expression<X>;
template <class X>
inline constexpr bool is_lazy = is_tile<X> && !is_eager<X>;
// Slices have no slices of their own.
template <class L>
concept Sliced = requires {
  typename L::Row;
};
template <class X>
inline constexpr bool is_full = false;
template <class E, Sliced L>
inline constexpr bool is_full<Tile<E, L>> = true;
template <class T, Sliced L>
inline constexpr bool is_full<Operand<T, L>> = true;

// An operand that meets A: a tile, or a number if A is a tile.
template <class B, class A>
concept Meets = is_tile<A> || is_tile<B>;

// Elements base[r * row_stride + c * col_stride] where the mask holds, `other` elsewhere. A load of
// one row or column answers for every row or column of the tile it meets.
template <class T, class L, bool Unit>
struct Load {
  using Element = Loaded<T>;
  using Layout = L;
  const T* base;
  int64_t row_stride, col_stride;
  int rows, cols;  // valid ones
  Element other;

  CRIA_FN const T* address(int r, int c) const {
    return base + (L::rows == 1 ? 0 : r * row_stride) +
           (L::cols == 1 ? 0
            : Unit       ? c
                         : c * col_stride);
  }
  CRIA_FN Element value(int r, int c) const { return widen(*address(r, c)); }
  template <Region R>
  CRIA_FN Element at(int r, int c) const {
    if constexpr (R == Region::kInside)
      return value(r, c);
    else if constexpr (R == Region::kEdge)
      return r < rows && c < cols ? value(r, c) : other;
    else
      return other;
  }
  CRIA_FN Extent extent() const { return {rows, cols, rows, cols}; }
  CRIA_FN bool rows_apart() const { return L::rows > 1 && row_stride > L::cols; }
};

CRIA_FN int clip(int n, int most) { return n < 0 ? 0 : min_of(n, most); }
// Of an axis of `extent` elements; one element that counts for a whole axis has no end.
CRIA_FN int valid_of(int n, int extent) {
  return extent == 1 && n > 0 ? INT32_MAX : clip(n, extent);
}

template <class T, int N>
alignas(64) inline constexpr T kZeros[N] = {};

template <class L, class T, class Off>
CRIA_FN auto load_node(const T* base, Off off, Mask mask, Loaded<T> other) {
  static_assert(Off::rows == L::rows && Off::cols == L::cols,
                "load: offsets and layout differ in shape");
  const int rows = valid_of(mask.rows, L::rows), cols = valid_of(mask.cols, L::cols);
  // Zeros from no memory are a row of zeros, so that what they are added to stays a dense loop.
  if ((rows == 0 || cols == 0) && other == 0)
    return Load<T, L, Off::unit>{kZeros<T, L::cols>, 0, 0, INT32_MAX, INT32_MAX, other};
  const T* origin = rows > 0 && cols > 0 ? base + off(0, 0) : base;
  return Load<T, L, Off::unit>{origin, off(1, 0) - off(0, 0), off(0, 1) - off(0, 0), rows, cols,
                               other};
}

// base[index] where the mask holds, `other` elsewhere.
template <class T, class I>
struct Gather {
  using Element = Loaded<T>;
  using Layout = typename I::Layout;
  const T* base;
  I index;
  int rows, cols;
  Element other;

  CRIA_FN const T* address(int r, int c) const {
    return base + index.template at<Region::kEdge>(r, c);
  }
  template <Region R>
  CRIA_FN Element at(int r, int c) const {
    if constexpr (R == Region::kInside)
      return widen(base[index.template at<R>(r, c)]);
    else
      return r < rows && c < cols ? widen(base[index.template at<R>(r, c)]) : other;
  }
  CRIA_FN Extent extent() const { return Extent{rows, cols, rows, cols} & index.extent(); }
};

// A scalar operand: float, or int32_t for integers that fit.
template <class E>
struct Constant {
  using Element = E;
  E value;
  template <Region>
  CRIA_FN E at(int, int) const {
    return value;
  }
  CRIA_FN Extent extent() const { return {}; }
};

// f applied to the elements of all operands. Args are held types: values in lazy nodes, references
// in one that is evaluated at once.
template <class F, class L, class... Args>
struct Map {
  using Layout = L;
  F f;
  std::tuple<Args...> args;

  template <Region R>
  CRIA_FN auto at(int r, int c) const {
    return std::apply(
        [&](const auto&... x)
            __attribute__((always_inline)) { return f(x.template at<R>(r, c)...); },
        args);
  }
  using Element = decltype(std::declval<const F&>()(
      std::declval<const std::remove_cvref_t<Args>&>().template at<Region::kInside>(0, 0)...));
  CRIA_FN Extent extent() const {
    return std::apply([](const auto&... x) { return (x.extent() & ...); }, args);
  }
  CRIA_FN bool rows_apart() const;
};

// Whether rows of the tile are pieces of longer rows in memory, as far as an expression knows.
template <class X>
CRIA_FN bool rows_apart(const X& x) {
  if constexpr (requires { x.rows_apart(); })
    return x.rows_apart();
  else
    return false;
}
template <class F, class L, class... Args>
CRIA_FN bool Map<F, L, Args...>::rows_apart() const {
  return std::apply([](const auto&... x) { return (tile::rows_apart(x) || ...); }, args);
}

// cond(r, c) ? x : other.
template <class Cond, class X>
struct Select {
  using Element = typename X::Element;
  using Layout = typename X::Layout;
  Cond cond;
  X x;
  Element other;
  template <Region R>
  CRIA_FN Element at(int r, int c) const {
    return cond(r, c) ? x.template at<R>(r, c) : other;
  }
  CRIA_FN Extent extent() const { return x.extent(); }
};

template <class X>
struct LayoutOf {
  using type = Scalar;
};
template <Expression X>
struct LayoutOf<X> {
  using type = typename X::Layout;
};
template <class A, class... B>
struct CommonLayout {
  using type =
      typename Broadcast<typename LayoutOf<A>::type, typename CommonLayout<B...>::type>::type;
};
template <class A>
struct CommonLayout<A> {
  using type = typename LayoutOf<A>::type;
};

template <class X>
CRIA_FN auto constant(X x) {
  static_assert(std::is_arithmetic_v<X>, "an operand must be a tile or a number");
  if constexpr (std::is_integral_v<X> && sizeof(X) <= 4)
    return Constant<int32_t>{static_cast<int32_t>(x)};
  else
    return Constant<float>{static_cast<float>(x)};
}
// What a lazy node keeps of an operand.
template <class X>
CRIA_FN auto hold(const X& x) {
  if constexpr (is_tile<X>)
    return x;
  else
    return constant(x);
}
// What an operation computed at once needs of it.
template <class X>
CRIA_FN decltype(auto) refer(const X& x) {
  if constexpr (is_tile<X>)
    return (x);
  else
    return constant(x);
}

template <class F, class... X>
CRIA_FN auto map(F f, const X&... x) {
  using L = typename CommonLayout<X...>::type;
  if constexpr ((is_lazy<X> || ...) && !(is_full<X> || ...)) {
    return Map<F, L, decltype(hold(x))...>{f, {hold(x)...}};
  } else {
    const Map<F, L, decltype(refer(x))...> at_once{f, {refer(x)...}};
    return Tile<typename decltype(at_once)::Element, L>(at_once);
  }
}

// In place: t = f(t, x...).
template <class E, class L, class F, class... X>
CRIA_FN void update(Tile<E, L>& t, F f, const X&... x) {
  static_assert(std::is_same_v<typename CommonLayout<Tile<E, L>, X...>::type, L>,
                "update: the other operands must be tiles, rows or columns of the updated tile");
  evaluate(Map<F, L, const Tile<E, L>&, decltype(refer(x))...>{f, {t, refer(x)...}}, t.v);
}

// Several rounded tiles at once, in place: f changes the elements it is given, f(t, more...).
template <class F, class T, class L, class... More>
CRIA_FN void update_all(F f, Operand<T, L>& t, More&... more) {
  static_assert((std::is_same_v<More, Operand<T, L>> && ...),
                "update_all: the tiles must have one type and layout");
  const auto round = [](float& x) { x = rounded_to<T>(x); };
  for (int i = 0; i < L::rows * L::cols; ++i) {
    f(t.v[i], more.v[i]...);
    round(t.v[i]), (round(more.v[i]), ...);
  }
}

#define CRIA_TILE_OPERATOR(op)                               \
  template <class A, Meets<A> B>                             \
  CRIA_FN auto operator op(const A& a, const B& b) {         \
    return map([](auto x, auto y) { return x op y; }, a, b); \
  }
CRIA_TILE_OPERATORS(CRIA_TILE_OPERATOR)
#undef CRIA_TILE_OPERATOR

#define CRIA_TILE_ASSIGN(op)                                                                    \
  template <Expression A, class B>                                                              \
  CRIA_FN A& operator op##=(A& a, const B& b) {                                                 \
    static_assert(is_eager<A>,                                                                  \
                  "a lazy expression cannot change: make it a tile first, auto t = p.keep(x)"); \
    using E = typename A::Element;                                                              \
    update(                                                                                     \
        a, [](E x, auto y) { return static_cast<E>(x op y); }, b);                              \
    return a;                                                                                   \
  }
CRIA_TILE_ASSIGNMENTS(CRIA_TILE_ASSIGN)
#undef CRIA_TILE_ASSIGN

template <Expression A>
CRIA_FN auto operator-(const A& a) {
  return map([](auto x) { return -x; }, a);
}

#define CRIA_TILE_FUNCTION(name)                    \
  template <Expression A>                           \
  CRIA_FN auto name(const A& a) {                   \
    return map([](float x) { return name(x); }, a); \
  }
CRIA_TILE_FUNCTIONS(CRIA_TILE_FUNCTION)
#undef CRIA_TILE_FUNCTION

template <class A, Meets<A> B>
CRIA_FN auto max(const A& a, const B& b) {
  return map([](float x, float y) { return max(x, y); }, a, b);
}
template <class A, Meets<A> B>
CRIA_FN auto min(const A& a, const B& b) {
  return map([](float x, float y) { return min(x, y); }, a, b);
}
template <Expression C, class A, class B>
CRIA_FN auto where(const C& c, const A& a, const B& b) {
  return map([](bool q, auto x, auto y) { return q ? x : y; }, c, a, b);
}

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
