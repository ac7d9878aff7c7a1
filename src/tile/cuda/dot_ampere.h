// dot on mma.sync: fragments of A and B read from swizzled shared memory (or A from registers).
// 16-bit types advance k by 16 per instruction, fp32 by 8 as tf32; ldmatrix serves both, because four
// floats are one of its 16-byte rows.
#pragma once

#include "tile/cuda/shared.h"

namespace cria::tile {
inline namespace cuda {

template <class T>
inline constexpr int k_step = sizeof(T) == 2 ? 16 : 8;

// A fragment of the 16 x k_step block at (row0, kk * k_step).
template <class T, int R, int C>
CRIA_FN void a_fragment(View<T, R, C> v, int row0, int kk, uint32_t (&r)[4]) {
  const int l = threadIdx.x % 32;
  ptx::ldmatrix(r, v.address + v.chunk_offset(row0 + l % 16, kk * 2 + l / 16));
}
template <class T, int R, int C>
CRIA_FN void a_fragment(Transposed<View<T, R, C>> a, int row0, int kk, uint32_t (&r)[4]) {
  const auto v = a.view;
  const int l = threadIdx.x % 32;
  if constexpr (sizeof(T) == 2) {
    ptx::ldmatrix_trans(
        r, v.address + v.chunk_offset(kk * 16 + l / 16 * 8 + l % 8, row0 / 8 + l / 8 % 2));
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      r[i] = ptx::load_shared_32(v.address +
                                 v.offset(kk * 8 + l % 4 + i / 2 * 4, row0 + l / 4 + i % 2 * 8));
  }
}

// B fragments of two neighbouring 8-column groups at (kk * k_step, col0): r[0..1] and r[2..3].
// Paired: k runs in the order the accumulator layout holds its columns (0 2 4 6 | 1 3 5 7), to meet an
// fp32 A operand that is an accumulator.
template <bool Paired, class T, int R, int C>
CRIA_FN void b_fragment(Transposed<View<T, R, C>> b, int col0, int kk, uint32_t (&r)[4]) {
  const auto v = b.view;
  const int l = threadIdx.x % 32;
  if constexpr (!Paired) {
    ptx::ldmatrix(r, v.address + v.chunk_offset(col0 + l % 8 + l / 16 * 8, kk * 2 + l / 8 % 2));
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      r[i] = ptx::load_shared_32(v.address +
                                 v.offset(col0 + l / 4 + i / 2 * 8, kk * 8 + l % 4 * 2 + i % 2));
  }
}
template <bool Paired, class T, int R, int C>
CRIA_FN void b_fragment(View<T, R, C> v, int col0, int kk, uint32_t (&r)[4]) {
  const int l = threadIdx.x % 32;
  if constexpr (sizeof(T) == 2) {
    ptx::ldmatrix_trans(r, v.address + v.chunk_offset(kk * 16 + l % 16, col0 / 8 + l / 16));
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int k = kk * 8 + (Paired ? l % 4 * 2 + i % 2 : l % 4 + i % 2 * 4);
      r[i] = ptx::load_shared_32(v.address + v.offset(k, col0 + l / 4 + i / 2 * 8));
    }
  }
}

// c += a b for one 16 x 8 block of 16-bit operands.
template <DotPrecision, class T>
  requires(sizeof(T) == 2)
CRIA_FN void multiply(Type<T> t, float* c, const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  ptx::mma(t, c, a, b0, b1);
}
// fp32: tf32 once, or three times with both operands split into a leading and a trailing tf32 part.
template <DotPrecision Precision>
CRIA_FN void multiply(Type<float>, float* c, const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  const uint32_t b[2] = {b0, b1};
  uint32_t ah[4], al[4], bh[2], bl[2];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    ah[i] = ptx::to_tf32(__uint_as_float(a[i]));
    al[i] = ptx::to_tf32(__uint_as_float(a[i]) - __uint_as_float(ah[i]));
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    bh[i] = ptx::to_tf32(__uint_as_float(b[i]));
    bl[i] = ptx::to_tf32(__uint_as_float(b[i]) - __uint_as_float(bh[i]));
  }
  if constexpr (Precision == DotPrecision::kFp32) {
    ptx::mma_tf32(c, al, bh[0], bh[1]);
    ptx::mma_tf32(c, ah, bl[0], bl[1]);
  }
  ptx::mma_tf32(c, ah, bh[0], bh[1]);
}

// acc += A B, where read_a(strip, kk, fragment) supplies A.
template <DotPrecision Precision, class T, bool Paired, int K, class ReadA, class B, class L>
CRIA_FN void dot_mma(Tile<float, L>& acc, ReadA read_a, B b) {
  static_assert(K % k_step<T> == 0, "dot: the inner dimension must be a multiple of the mma step");
  static_assert(L::cols % 16 == 0, "dot: mma.sync takes columns of acc in groups of 16");
  static_assert(B::rows == K && B::cols == L::cols,
                "dot: operand shapes differ: acc is M x N, a is M x K, b is K x N");
#pragma unroll
  for (int kk = 0; kk < K / k_step<T>; ++kk) {
    uint32_t a[L::strips][4];
#pragma unroll
    for (int s = 0; s < L::strips; ++s) read_a(s, kk, a[s]);
#pragma unroll
    for (int n = 0; n < L::groups; n += 2) {
      uint32_t f[4];
      b_fragment<Paired>(b, n * 8, kk, f);
#pragma unroll
      for (int s = 0; s < L::strips; ++s) {
        multiply<Precision>(Type<T>{}, acc.v + (s * L::groups + n) * 4, a[s], f[0], f[1]);
        multiply<Precision>(Type<T>{}, acc.v + (s * L::groups + n + 1) * 4, a[s], f[2], f[3]);
      }
    }
  }
}

}  // namespace cuda
}  // namespace cria::tile
