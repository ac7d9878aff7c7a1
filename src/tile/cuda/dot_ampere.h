// dot on mma.sync: fragments of A and B read from swizzled shared memory (or A from registers).
// 16-bit types advance k by 16 per instruction, fp32 by 8 as tf32; ldmatrix serves both, because
// four floats are one of its 16-byte rows.
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
  ptx::ldmatrix(r, v.address + v.moved(v.chunk_offset(l % 16, l / 16), row0, kk * 2));
}
template <class T, int R, int C>
CRIA_FN void a_fragment(Transposed<View<T, R, C>> a, int row0, int kk, uint32_t (&r)[4]) {
  const auto v = a.view;
  const int l = threadIdx.x % 32;
  if constexpr (sizeof(T) == 2) {
    const int own = v.chunk_offset(l / 16 * 8 + l % 8, l / 8 % 2);
    ptx::ldmatrix_trans(r, v.address + v.moved(own, kk * 16, row0 / 8));
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int own = v.offset(l % 4 + i / 2 * 4, l / 4);
      r[i] = ptx::load_shared_32(v.address + v.moved(own, kk * 8, row0 / 4 + i % 2 * 2));
    }
  }
}

// B fragments of two neighbouring 8-column groups at (kk * k_step, col0): r[0..1] and r[2..3].
// Paired: k runs in the order the accumulator layout holds its columns (0 2 4 6 | 1 3 5 7), to meet
// an fp32 A operand that is an accumulator.
template <bool Paired, class T, int R, int C>
CRIA_FN void b_fragment(Transposed<View<T, R, C>> b, int col0, int kk, uint32_t (&r)[4]) {
  const auto v = b.view;
  const int l = threadIdx.x % 32;
  if constexpr (!Paired) {
    const int own = v.chunk_offset(l % 8 + l / 16 * 8, l / 8 % 2);
    ptx::ldmatrix(r, v.address + v.moved(own, col0, kk * 2));
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int own = v.offset(l / 4, l % 4 * 2 + i % 2);
      r[i] = ptx::load_shared_32(v.address + v.moved(own, col0 + i / 2 * 8, kk * 2));
    }
  }
}
template <bool Paired, class T, int R, int C>
CRIA_FN void b_fragment(View<T, R, C> v, int col0, int kk, uint32_t (&r)[4]) {
  const int l = threadIdx.x % 32;
  if constexpr (sizeof(T) == 2) {
    const int own = v.chunk_offset(l % 16, l / 16);
    ptx::ldmatrix_trans(r, v.address + v.moved(own, kk * 16, col0 / 8));
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int own = v.offset(Paired ? l % 4 * 2 + i % 2 : l % 4 + i % 2 * 4, l / 4);
      r[i] = ptx::load_shared_32(v.address + v.moved(own, kk * 8, col0 / 4 + i / 2 * 2));
    }
  }
}

// A fragment of N words as mma takes it: 16-bit elements as they are, fp32 as tf32 and, for full
// precision, what rounding to tf32 leaves over.
template <class T, int N>
struct Fragment {
  uint32_t v[N];
  Fragment() = default;
  CRIA_FN explicit Fragment(const uint32_t* words) {
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = words[i];
  }
};
template <int N>
struct Fragment<float, N> {
  uint32_t v[N], rest[N];
  Fragment() = default;
  CRIA_FN explicit Fragment(const uint32_t* words) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float x = __uint_as_float(words[i]);
      v[i] = ptx::to_tf32(x);
      rest[i] = ptx::to_tf32(x - __uint_as_float(v[i]));
    }
  }
};

// c += a b for one 16 x 8 block. Tensor cores cut the sums they write instead of rounding them,
// always towards zero: at full precision the products of a step are added up on their own, and c
// takes what they come to with rounding. Over long sums that keeps the bits the cuts would take.
template <DotPrecision, class T>
CRIA_FN void multiply(float* c, const Fragment<T, 4>& a, const Fragment<T, 2>& b) {
  ptx::mma(Type<T>{}, c, a.v, b.v[0], b.v[1]);
}
template <DotPrecision Precision>
CRIA_FN void multiply(float* c, const Fragment<float, 4>& a, const Fragment<float, 2>& b) {
  if constexpr (Precision == DotPrecision::kTf32) {
    ptx::mma_tf32(c, a.v, b.v[0], b.v[1]);
  } else {
    float step[4] = {};
    ptx::mma_tf32(step, a.rest, b.v[0], b.v[1]);
    ptx::mma_tf32(step, a.v, b.rest[0], b.rest[1]);
    ptx::mma_tf32(step, a.v, b.v[0], b.v[1]);
#pragma unroll
    for (int i = 0; i < 4; ++i) c[i] += step[i];
  }
}

// Where the fragments of A come from: shared memory, or registers in the layout of an accumulator.
// There 16-bit pairs are the fragment already; fp32 columns come in pairs.
template <class A>
struct SharedOperand {
  A a;
  int row0, row_step;
  CRIA_FN void read(int strip, int k0, int k, uint32_t (&r)[4]) const {
    a_fragment(a, row0 + strip * row_step, k0 + k, r);
  }
  CRIA_FN void advance(int) {}
};
template <class T, class L>
struct RegisterOperand {
  Operand<T, L> a;
  CRIA_FN void read(int strip, int, int k, uint32_t (&r)[4]) const {
    const uint32_t* v = a.v + (strip * (L::groups * int(sizeof(T)) / 4) + k) * 4;
    const bool pairs = sizeof(T) == 4;
    r[0] = v[0], r[1] = v[pairs ? 2 : 1], r[2] = v[pairs ? 1 : 2], r[3] = v[3];
  }
  // Registers have no addresses: what comes next moves to the front.
  CRIA_FN void advance(int steps) {
#pragma unroll
    for (int i = 0; i + steps * 4 < Operand<T, L>::words; ++i) a.v[i] = a.v[i + steps * 4];
  }
};

// Steps of k that are unrolled: a panel and no further, because a loop of several products in full
// would not fit the instruction cache. At full precision a step is many independent products
// already, and with more of them in sight the compiler holds so many sums at once that it spills.
template <DotPrecision Precision, class T>
inline constexpr int k_unroll = sizeof(T) == 4 && Precision == DotPrecision::kFp32 ? 1 : 4;

// acc += A B.
template <DotPrecision Precision, class T, bool Paired, int K, class A, class B, class L>
CRIA_FN void dot_mma(Tile<float, L>& acc, A a, B b) {
  static_assert(K % k_step<T> == 0, "dot: the inner dimension must be a multiple of the mma step");
  static_assert(L::cols % 16 == 0, "dot: mma.sync takes columns of acc in groups of 16");
  static_assert(B::rows == K && B::cols == L::cols,
                "dot: operand shapes differ: acc is M x N, a is M x K, b is K x N");
  constexpr int steps = K / k_step<T>, unroll = k_unroll<Precision, T>;
  constexpr int unrolled = steps % unroll == 0 ? unroll : steps;
#pragma unroll 1
  for (int k0 = 0; k0 < steps; k0 += unrolled) {
#pragma unroll
    for (int k = 0; k < unrolled; ++k) {
      Fragment<T, 4> rows[L::strips];
#pragma unroll
      for (int s = 0; s < L::strips; ++s) {
        uint32_t words[4];
        a.read(s, k0, k, words);
        rows[s] = Fragment<T, 4>(words);
      }
#pragma unroll
      for (int n = 0; n < L::groups; n += 2) {
        uint32_t f[4];
        b_fragment<Paired>(b, n * 8, k0 + k, f);
        const Fragment<T, 2> left(f), right(f + 2);
#pragma unroll
        for (int s = 0; s < L::strips; ++s) {
          multiply<Precision>(acc.v + (s * L::groups + n) * 4, rows[s], left);
          multiply<Precision>(acc.v + (s * L::groups + n + 1) * 4, rows[s], right);
        }
      }
    }
    a.advance(unrolled);
  }
}

}  // namespace cuda
}  // namespace cria::tile
