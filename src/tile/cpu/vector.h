// Explicit float vectors for what g++ does not vectorise by itself: reductions, products,
// transposes and stores that bypass the caches.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "tile/cpu/namespace.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

// Floats in the widest register of this instruction set.
#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

template <int N>
struct VectorOf;
template <>
struct VectorOf<16> {
  typedef float Float __attribute__((vector_size(64)));
};
template <>
struct VectorOf<8> {
  typedef float Float __attribute__((vector_size(32)));
};
template <>
struct VectorOf<4> {
  typedef float Float __attribute__((vector_size(16)));
};
template <int N>
using Vector = typename VectorOf<N>::Float;

// Memory needs no alignment. NOTE: the attribute must stay local to these two: auto and template
// arguments drop it, and aligned instructions would follow.
template <int N>
CRIA_FN Vector<N> load_vector(const float* p) {
  typedef Vector<N> Anywhere __attribute__((aligned(4), may_alias));
  return *reinterpret_cast<const Anywhere*>(p);
}
template <int N>
CRIA_FN void store_vector(float* p, Vector<N> v) {
  typedef Vector<N> Anywhere __attribute__((aligned(4), may_alias));
  *reinterpret_cast<Anywhere*>(p) = v;
}

// Combines the lanes of v by halving.
template <int N, class Op>
CRIA_FN float fold(Vector<N> v, Op op) {
  if constexpr (N == 4) {
    return op(op(v[0], v[1]), op(v[2], v[3]));
  } else {
    float lanes[N];
    store_vector<N>(lanes, v);
    return fold<N / 2>(op(load_vector<N / 2>(lanes), load_vector<N / 2>(lanes + N / 2)), op);
  }
}

inline constexpr int kLine = 64;  // bytes in a cache line

// Copies whole, aligned cache lines without reading or keeping the destination's.
CRIA_FN void stream_lines(void* to, const void* from, int64_t bytes) {
  auto* d = static_cast<char*>(to);
  auto* s = static_cast<const char*>(from);
#if defined(__AVX512F__)
  for (int64_t i = 0; i < bytes; i += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(d + i),
                        _mm512_loadu_si512(reinterpret_cast<const __m512i*>(s + i)));
#elif defined(__AVX__)
  for (int64_t i = 0; i < bytes; i += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(d + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + i)));
#elif defined(__SSE2__)
  for (int64_t i = 0; i < bytes; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(d + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(s + i)));
#else
  __builtin_memcpy(d, s, bytes);
#endif
}

// Makes streamed lines visible to other threads before whatever is written next.
CRIA_FN void stream_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
