// Tiles on the GPU: each thread holds its elements in registers, by the tile's layout.
#pragma once

#include <type_traits>

#include "tile/cuda/math.h"
#include "tile/layout.h"
#include "tile/operations.h"

namespace cria::tile {
inline namespace cuda {

inline constexpr bool kOnGpu = true;  // for what only suits a GPU, or only a CPU
inline constexpr bool kHasTf32 = true;

template <class E, class L>
struct Tile {
  using Element = E;
  using Layout = L;
  E v[L::regs];
};

// A float tile rounded to memory type T: the register operand A of dot. 16-bit types are packed in
// pairs, and unpacked where an elementwise operation uses them.
template <class T, class L>
struct Operand {
  using Layout = L;
  static constexpr int words = L::regs * int(sizeof(T)) / 4;
  uint32_t v[words];
  CRIA_FN float unpacked(int i) const {
    if constexpr (sizeof(T) == 4) {
      return __uint_as_float(v[i]);
    } else {
      float low, high;
      unpack2<T>(v[i / 2], low, high);
      return i % 2 == 0 ? low : high;
    }
  }
};

// A tile of 16-bit elements as it lies in memory, two to a register; unpacked anew wherever it is
// used.
template <class T, class L>
struct Packed {
  using Layout = L;
  uint32_t v[L::regs / 2];
  CRIA_FN float unpacked(int i) const {
    float low, high;
    unpack2<T>(ptx::opaque(v[i / 2]), low, high);
    return i % 2 == 0 ? low : high;
  }
};

template <class X>
struct LayoutOf {
  using type = Scalar;
};
template <class E, class L>
struct LayoutOf<Tile<E, L>> {
  using type = L;
};
template <class T, class L>
struct LayoutOf<Packed<T, L>> {
  using type = L;
};
template <class T, class L>
struct LayoutOf<Operand<T, L>> {
  using type = L;
};
template <class X>
inline constexpr bool is_tile = !std::is_same_v<typename LayoutOf<X>::type, Scalar>;

template <class A, class... B>
struct CommonLayout {
  using type =
      typename Broadcast<typename LayoutOf<A>::type, typename CommonLayout<B...>::type>::type;
};
template <class A>
struct CommonLayout<A> {
  using type = typename LayoutOf<A>::type;
};

// The value that register i of layout L meets in operand x: its own, its row's, its column's, or x.
template <class L, class X>
CRIA_FN auto element(const X& x, int i) {
  if constexpr (!is_tile<X>)
    return x;
  else if constexpr (requires { x.unpacked(i); })
    return x.unpacked(i);
  else if constexpr (std::is_same_v<typename X::Layout, L>)
    return x.v[i];
  else if constexpr (std::is_same_v<typename X::Layout, typename L::Row>)
    return x.v[L::row_reg(i)];
  else
    return x.v[L::col_reg(i)];
}

template <class F, class... X>
CRIA_FN auto map(F f, const X&... x) {
  using L = typename CommonLayout<X...>::type;
  Tile<decltype(f(element<L>(x, 0)...)), L> out;
#pragma unroll
  for (int i = 0; i < L::regs; ++i) out.v[i] = f(element<L>(x, i)...);
  return out;
}

// In place: t = f(t, x...).
template <class E, class L, class F, class... X>
CRIA_FN void update(Tile<E, L>& t, F f, const X&... x) {
#pragma unroll
  for (int i = 0; i < L::regs; ++i) t.v[i] = f(t.v[i], element<L>(x, i)...);
}

// The two elements of a word.
template <class T>
struct Pair {
  float low, high;
  CRIA_FN explicit Pair(uint32_t word) { unpack2<T>(word, low, high); }
};

// Several rounded tiles at once, in place: f changes the elements it is given, f(t, more...).
// Results are packed one by one, so that no more registers are needed than the tiles have.
template <class F, class T, class L, class... More>
CRIA_FN void update_all(F f, Operand<T, L>& t, More&... more) {
  static_assert((std::is_same_v<More, Operand<T, L>> && ...),
                "update_all: the tiles must have one type and layout");
  const auto word = [&](int i, auto&... x) {
    if constexpr (sizeof(T) == 2) {
      [&](auto... p) {
        f(p.low...), f(p.high...);
        ((x.v[i] = pack2<T>(p.low, p.high)), ...);
      }(Pair<T>(x.v[i])...);
    } else {
      [&](auto... e) {
        f(e...);
        ((x.v[i] = __float_as_uint(e)), ...);
      }(__uint_as_float(x.v[i])...);
    }
  };
#pragma unroll
  for (int i = 0; i < int(sizeof(t.v) / sizeof(*t.v)); ++i) word(i, t, more...);
}

// Operands come by value: a reference to a host constant would not exist on the GPU.
#define CRIA_TILE_OPERATOR(op)                               \
  template <class A, class B>                                \
    requires(is_tile<A> || is_tile<B>)                       \
  CRIA_FN auto operator op(A a, B b) {                       \
    return map([](auto x, auto y) { return x op y; }, a, b); \
  }
CRIA_TILE_OPERATORS(CRIA_TILE_OPERATOR)
#undef CRIA_TILE_OPERATOR

#define CRIA_TILE_ASSIGN(op)                               \
  template <class E, class L, class B>                     \
  CRIA_FN Tile<E, L>& operator op##=(Tile<E, L>& a, B b) { \
    update(                                                \
        a, [](E x, auto y) { return E(x op y); }, b);      \
    return a;                                              \
  }
CRIA_TILE_ASSIGNMENTS(CRIA_TILE_ASSIGN)
#undef CRIA_TILE_ASSIGN

template <class E, class L>
CRIA_FN auto operator-(const Tile<E, L>& a) {
  return map([](E x) { return -x; }, a);
}

#define CRIA_TILE_FUNCTION(name)                       \
  template <class E, class L>                          \
  CRIA_FN auto name(const Tile<E, L>& a) {             \
    return map([](E x) { return name(float(x)); }, a); \
  }
CRIA_TILE_FUNCTIONS(CRIA_TILE_FUNCTION)
#undef CRIA_TILE_FUNCTION

template <class A, class B>
  requires(is_tile<A> || is_tile<B>)
CRIA_FN auto max(A a, B b) {
  return map([](float x, float y) { return max(x, y); }, a, b);
}
template <class A, class B>
  requires(is_tile<A> || is_tile<B>)
CRIA_FN auto min(A a, B b) {
  return map([](float x, float y) { return min(x, y); }, a, b);
}
template <class C, class A, class B>
  requires(is_tile<C>)
CRIA_FN auto where(C c, A a, B b) {
  return map([](bool q, auto x, auto y) { return q ? x : y; }, c, a, b);
}

}  // namespace cuda
}  // namespace cria::tile
