// Compile-time arguments that read like run-time ones: p.arange(shape<N>), p.sum(x, axis<1>),
// p.pipeline(stages<3>, ...). They carry no data; they spare every call the word `template`.
#pragma once

#include <limits>

namespace cria::tile {

template <int... N>
struct Shape {};
template <int... N>
inline constexpr Shape<N...> shape{};

template <int A>
struct Axis {
  static_assert(A == 0 || A == 1,
                "axis: a tile has axis 0 (down the rows) and axis 1 (along a row)");
};
template <int A>
inline constexpr Axis<A> axis{};

template <class T>
struct Type {};
template <class T>
inline constexpr Type<T> type{};

template <int N>
struct Stages {};
template <int N>
inline constexpr Stages<N> stages{};

// dot_wait(pending<N>, ...): at most N products may still be in flight afterwards.
template <int N>
struct Pending {};
template <int N>
inline constexpr Pending<N> pending{};

// trans(tile, pad<P>): elements added to each staged row, so that columns fall into different
// banks.
template <int N>
struct Pad {};
template <int N>
inline constexpr Pad<N> pad{};

// update_pairs(pairs<N>, ...): the columns c and c + N of every 2 N.
template <int N>
struct Pairs {};
template <int N>
inline constexpr Pairs<N> pairs{};

// dot(acc, a, b, overwrite): acc = a b instead of acc += a b.
struct Overwrite {};
inline constexpr Overwrite overwrite{};

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Of sizes up to kMostSize (base/dims.h) and blocks up to 64 Ki.
constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
constexpr int round_up(int a, int b) { return ceil_div(a, b) * b; }
constexpr int min_of(int a, int b) { return a < b ? a : b; }
constexpr int max_of(int a, int b) { return a > b ? a : b; }

}  // namespace cria::tile
