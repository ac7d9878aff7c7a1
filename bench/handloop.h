// Loops as one would write them by hand for one machine: the rivals of the tile language on the
// CPU.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "base/dtype.h"

namespace cria::handloop {

// Whole cache lines to `to`, which is aligned to one, past the caches.
inline void stream_copy(void* to, const void* from, size_t bytes) {
#if defined(__AVX512F__)
  for (size_t i = 0; i < bytes; i += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(static_cast<char*>(to) + i),
                        _mm512_loadu_si512(static_cast<const char*>(from) + i));
#elif defined(__SSE2__)
  for (size_t i = 0; i < bytes; i += 16)
    _mm_stream_si128(
        reinterpret_cast<__m128i*>(static_cast<char*>(to) + i),
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(static_cast<const char*>(from) + i)));
#else
  std::memcpy(to, from, bytes);
#endif
}
inline void stream_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

typedef float Lanes __attribute__((vector_size(64)));

// g++ keeps the order of float sums, so the lanes are spelled out.
template <class T>
float sum_of_squares(const T* __restrict x, int n) {
  Lanes part[4] = {};
  int j = 0;
  for (; j + 64 <= n; j += 64) {
    alignas(64) float wide[64];
    for (int k = 0; k < 64; ++k) wide[k] = to_float(x[j + k]);
    for (int k = 0; k < 4; ++k) {
      const Lanes v = *reinterpret_cast<const Lanes*>(wide + 16 * k);
      part[k] += v * v;
    }
  }
  const Lanes total = (part[0] + part[1]) + (part[2] + part[3]);
  float sum = 0;
  for (int k = 0; k < 16; ++k) sum += total[k];
  for (; j < n; ++j) sum += to_float(x[j]) * to_float(x[j]);
  return sum;
}

// y[j] = f(j), with plain stores or a buffer's worth at a time past the caches.
template <class T, class F>
void write_row(T* __restrict y, int n, bool streaming, F f) {
  if (!streaming || reinterpret_cast<uintptr_t>(y) % 64 != 0) {
#pragma GCC ivdep
    for (int j = 0; j < n; ++j) y[j] = from_float<T>(f(j));
    return;
  }
  constexpr int kPiece = 512;
  alignas(64) T piece[kPiece];
  int j = 0;
  for (; j + kPiece <= n; j += kPiece) {
#pragma GCC ivdep
    for (int k = 0; k < kPiece; ++k) piece[k] = from_float<T>(f(j + k));
    stream_copy(y + j, piece, sizeof(piece));
  }
  for (; j < n; ++j) y[j] = from_float<T>(f(j));
}

template <class T>
void rmsnorm_row(const T* __restrict x, const T* __restrict w, T* __restrict y, int n, float eps,
                 bool streaming) {
  const float r = 1.f / __builtin_sqrtf(sum_of_squares(x, n) / static_cast<float>(n) + eps);
  write_row(y, n, streaming, [=](int j) { return to_float(x[j]) * r * to_float(w[j]); });
}

// 2^n times a polynomial for the rest; right to a few units in the last place.
inline float exponential(float x) {
  x = x < -87.f ? -87.f : x > 88.f ? 88.f : x;
  constexpr float kRound = 12582912.f;  // 1.5 * 2^23
  const float shifted = x * 1.44269504f + kRound, n = shifted - kRound;
  const float r = x - n * 0.693147182f;
  float p = 8.3333333e-3f;
  p = p * r + 4.1666667e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.f;
  p = p * r + 1.f;
  uint32_t bits, scale;
  std::memcpy(&bits, &p, 4);
  std::memcpy(&scale, &shifted, 4);
  bits += scale << 23;
  std::memcpy(&p, &bits, 4);
  return p;
}

template <class T>
void silu_up_row(const T* __restrict gate, const T* __restrict up, T* __restrict y, int n,
                 bool streaming) {
  write_row(y, n, streaming, [=](int j) {
    const float g = to_float(gate[j]);
    return g * (1.f / (1.f + exponential(-g))) * to_float(up[j]);
  });
}

}  // namespace cria::handloop
