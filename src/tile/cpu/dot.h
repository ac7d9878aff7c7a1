// acc += A B in blocks of registers: each row of the block broadcasts its element of A to vectors
// of B.
#pragma once

#include <algorithm>

#include "tile/cpu/shared.h"
#include "tile/cpu/vector.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

// Rows and vectors of one register block: what leaves room for B's vectors and one broadcast.
#if defined(__AVX512F__)
inline constexpr int kBlockRows = 6, kBlockVectors = 4;
#else
inline constexpr int kBlockRows = 6, kBlockVectors = 2;
#endif

// `Rows` x (`Vectors` * `Lanes`) elements of acc, over all of k.
template <int Rows, int Vectors, int Lanes>
CRIA_FN void dot_block(float* acc, int64_t acc_ld, const float* a, int64_t a_stride, int64_t a_step,
                       const float* b, int64_t b_ld, int k, bool overwrite) {
  using V = Vector<Lanes>;
  V sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j)
      sum[i][j] = overwrite ? V{} : load_vector<Lanes>(acc + i * acc_ld + j * Lanes);
  for (int n = 0; n < k; ++n) {
    V right[Vectors];
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) right[j] = load_vector<Lanes>(b + n * b_ld + j * Lanes);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j) sum[i][j] += a[i * a_stride + n * a_step] * right[j];
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) store_vector<Lanes>(acc + i * acc_ld + j * Lanes, sum[i][j]);
}

// All rows of a panel of columns.
template <int Vectors, int Lanes>
inline void dot_panel(float* acc, int64_t acc_ld, const Matrix& a, const float* b, int64_t b_ld,
                      int k, bool overwrite) {
  int i = 0;
  auto block = [&](auto rows) {
    dot_block<rows.value, Vectors, Lanes>(acc + i * acc_ld, acc_ld, a.data + i * a.stride, a.stride,
                                          a.step, b, b_ld, k, overwrite);
    i += rows.value;
  };
  while (i + kBlockRows <= a.outer) block(std::integral_constant<int, kBlockRows>{});
  if (i + 4 <= a.outer) block(std::integral_constant<int, 4>{});
  if (i + 2 <= a.outer) block(std::integral_constant<int, 2>{});
  if (i < a.outer) block(std::integral_constant<int, 1>{});
}

// N columns of acc (row-major, Ld columns) += or = a b; b has N columns, rows of a beyond its valid
// ones count as zero.
template <int M, int N, int Ld>
CRIA_FN void multiply(float* acc, const Matrix& a, const Matrix& b, bool overwrite) {
  static_assert(N % 8 == 0, "dot: columns come in groups of 8");
  const int k = min_of(a.inner, b.outer);
  int j = 0;
  for (; j + kBlockVectors * kLanes <= N; j += kBlockVectors * kLanes)
    dot_panel<kBlockVectors, kLanes>(acc + j, Ld, a, b.data + j, b.stride, k, overwrite);
  if constexpr (kBlockVectors > 2) {
    for (; j + 2 * kLanes <= N; j += 2 * kLanes)
      dot_panel<2, kLanes>(acc + j, Ld, a, b.data + j, b.stride, k, overwrite);
  }
  for (; j + kLanes <= N; j += kLanes)
    dot_panel<1, kLanes>(acc + j, Ld, a, b.data + j, b.stride, k, overwrite);
  if constexpr (N % kLanes != 0)
    dot_panel<1, 8>(acc + j, Ld, a, b.data + j, b.stride, k, overwrite);
  if (overwrite)
    for (int i = a.outer; i < M; ++i) std::fill_n(acc + i * Ld, N, 0.f);
}

// acc of layout L += or = a b, tile by tile of b.
template <class L, class B>
CRIA_FN void multiply(float* acc, const Matrix& a, B b, float* spare, bool overwrite) {
  multiply<L::rows, B::cols, L::cols>(acc, a, operand_b(b, spare), overwrite);
}
template <class L, class V>
CRIA_FN void multiply(float* acc, const Matrix& a, Transposed<Stacked<V>> b, float* spare,
                      bool overwrite) {
  multiply<L>(acc, a, trans(b.view.top), spare, overwrite);
  multiply<L>(acc + V::rows, a, trans(b.view.bottom), spare, overwrite);
}

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
