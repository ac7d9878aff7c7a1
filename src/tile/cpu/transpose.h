// Transposes of float blocks, kLanes x kLanes at a time in registers.
#pragma once

#include <utility>

#include "tile/cpu/tile.h"
#include "tile/cpu/vector.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

// Exchanges blocks of S lanes between rows S apart: log2(kLanes) of these transpose a square.
template <int S, int N, int... Lane>
CRIA_FN void exchange(Vector<N> (&rows)[N], std::integer_sequence<int, Lane...>) {
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) {
    if (i & S) continue;
    const Vector<N> a = rows[i], b = rows[i + S];
    rows[i] = __builtin_shufflevector(a, b, (Lane & S ? N + Lane - S : Lane)...);
    rows[i + S] = __builtin_shufflevector(a, b, (Lane & S ? N + Lane : Lane + S)...);
  }
}

// One kLanes x kLanes square: to[c][r] = from[r][c].
template <class T>
CRIA_FN void transpose_square(const T* from, int64_t from_ld, float* to, int64_t to_ld) {
  constexpr int N = kLanes;
  Vector<N> rows[N];
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      rows[i] = load_vector<N>(from + i * from_ld);
    } else {
      float wide[N];
      for (int k = 0; k < N; ++k) wide[k] = to_float(from[i * from_ld + k]);
      rows[i] = load_vector<N>(wide);
    }
  }
  constexpr std::make_integer_sequence<int, N> lanes;
  exchange<1>(rows, lanes);
  exchange<2>(rows, lanes);
  if constexpr (N > 4) exchange<4>(rows, lanes);
  if constexpr (N > 8) exchange<8>(rows, lanes);
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) store_vector<N>(to + i * to_ld, rows[i]);
}

// to[c][r] = from[r][c] for a rows x cols block.
template <class T>
inline void transpose_block(const T* from, int64_t from_ld, int rows, int cols, float* to,
                            int64_t to_ld) {
  constexpr int N = kLanes;
  const int whole_rows = rows / N * N, whole_cols = cols / N * N;
  for (int r = 0; r < whole_rows; r += N)
    for (int c = 0; c < whole_cols; c += N)
      transpose_square(from + r * from_ld + c, from_ld, to + c * to_ld + r, to_ld);
  for (int r = 0; r < rows; ++r)
    for (int c = r < whole_rows ? whole_cols : 0; c < cols; ++c)
      to[c * to_ld + r] = to_float(from[r * from_ld + c]);
}

template <class E, class L, class Out>
CRIA_FN void transpose_tile(const Tile<E, L>& from, Tile<E, Out>& to) {
  static_assert(L::rows == Out::cols && L::cols == Out::rows, "trans: the shapes do not match");
  if constexpr (std::is_same_v<E, float>) {
    transpose_block(from.v, L::cols, L::rows, L::cols, to.v, Out::cols);
  } else {
    for (int r = 0; r < L::rows; ++r)
      for (int c = 0; c < L::cols; ++c) to.v[c * Out::cols + r] = from.v[r * L::cols + c];
  }
}

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
