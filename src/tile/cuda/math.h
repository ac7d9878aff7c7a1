// Scalar functions on the GPU. Fast forms whose error is below bf16 rounding by orders of magnitude
// and at most a few ulp of fp32; the CPU target has the same names.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>

#include "base/dtype.h"
#include "tile/cuda/ptx/math.h"

namespace cria::tile {
inline namespace cuda {

CRIA_FN float bits_to_float(uint32_t u) { return __uint_as_float(u); }

CRIA_FN float exp2(float x) { return ptx::exp2_approx(x); }
CRIA_FN float exp(float x) { return ptx::exp2_approx(x * 1.4426950408889634f); }
CRIA_FN float log(float x) { return ::logf(x); }
CRIA_FN float log2(float x) { return ::log2f(x); }
CRIA_FN float sqrt(float x) { return ::sqrtf(x); }
CRIA_FN float rsqrt(float x) { return ::rsqrtf(x); }
CRIA_FN float sin(float x) { return ::sinf(x); }
CRIA_FN float cos(float x) { return ::cosf(x); }
CRIA_FN float tanh(float x) { return ::tanhf(x); }
CRIA_FN float abs(float x) { return ::fabsf(x); }
CRIA_FN float max(float a, float b) { return ::fmaxf(a, b); }
CRIA_FN float min(float a, float b) { return ::fminf(a, b); }
// NOTE: __fdividef is 0 for divisors beyond 2^126; 1 + exp(-x) reaches that only where the quotient
// is 0.
CRIA_FN float sigmoid(float x) { return __fdividef(1.f, 1.f + exp(-x)); }
CRIA_FN float silu(float x) { return __fdividef(x, 1.f + exp(-x)); }
CRIA_FN float where(bool c, float a, float b) { return c ? a : b; }

// Memory type <-> float.
CRIA_FN float widen(float x) { return x; }
CRIA_FN float widen(bf16 x) { return __uint_as_float(uint32_t(x.bits) << 16); }
CRIA_FN float widen(f16 x) { return __half2float(__ushort_as_half(x.bits)); }
CRIA_FN int32_t widen(int32_t x) { return x; }
CRIA_FN int32_t widen(int16_t x) { return x; }

// Two floats as one 32-bit word of 16-bit elements, low half first.
template <class T>
CRIA_FN uint32_t pack2(float low, float high);
template <>
CRIA_FN uint32_t pack2<bf16>(float low, float high) {
  return ptx::pack_bf16(low, high);
}
template <>
CRIA_FN uint32_t pack2<f16>(float low, float high) {
  return ptx::pack_f16(low, high);
}
// NOTE: converted as a pair, which is several times faster than one alone.
template <class T>
CRIA_FN T narrow(float x) {
  if constexpr (std::is_arithmetic_v<T>)
    return T(x);
  else
    return {uint16_t(pack2<T>(x, 0))};
}

// x rounded to memory type T and widened again.
template <class T>
CRIA_FN float rounded_to(float x) {
  return widen(narrow<T>(x));
}

template <class T>
CRIA_FN void unpack2(uint32_t word, float& low, float& high) {
  if constexpr (__is_same(T, bf16)) {
    low = __uint_as_float(word << 16);
    high = __uint_as_float(word & 0xffff0000u);
  } else {
    low = __half2float(__ushort_as_half(uint16_t(word)));
    high = __half2float(__ushort_as_half(uint16_t(word >> 16)));
  }
}

}  // namespace cuda
}  // namespace cria::tile
