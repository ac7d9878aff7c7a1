// Scalar functions on the CPU, branch-free so that g++ vectorises loops over them (libm's it does
// not). Relative errors are a few ulp of fp32; subnormal arguments and results count as zero, as in
// a GPU's fast forms. Infinities and NaN behave as in libm. Polynomials are minimax fits of
// relative error.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/dtype.h"
#include "tile/cpu/namespace.h"
#include "tile/shape.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

CRIA_FN uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
CRIA_FN float float_of(uint32_t u) { return std::bit_cast<float>(u); }

// max and min return the other argument when the first is NaN.
CRIA_FN float max(float a, float b) { return a > b ? a : b; }
CRIA_FN float min(float a, float b) { return a < b ? a : b; }
CRIA_FN float abs(float x) { return __builtin_fabsf(x); }
CRIA_FN float sqrt(float x) { return __builtin_sqrtf(x); }
CRIA_FN float rsqrt(float x) { return 1.f / __builtin_sqrtf(x); }

// Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits of the sum.
inline constexpr float kRound = 12582912.f;

// y * 2^(n-1) for the integer n that `rounded` = n + kRound holds; n = -126 gives 0, n = 129
// infinity.
CRIA_FN float scale_half(float y, float rounded) {
  return y * float_of((bits_of(rounded) << 23) + (126u << 23));
}

// 2^x = 2^(n-1) * 2p(f), |f| <= 1/2. The clamps keep NaN: a comparison with it is false.
CRIA_FN float exp2(float x) {
  x = x < -126.f ? -126.f : x;
  x = x > 129.f ? 129.f : x;
  const float rounded = x + kRound, f = x - (rounded - kRound);
  float p = 3.070672e-4f;
  p = p * f + 2.679775e-3f;
  p = p * f + 1.9236874e-2f;
  p = p * f + 1.1100665e-1f;
  p = p * f + 4.8045295e-1f;
  p = p * f + 1.3862944f;
  p = p * f + 2.f;
  return scale_half(p, rounded);
}

// e^x = 2^(n-1) * 2e^r with r = x - n ln 2, ln 2 in two parts so that the product n ln 2 is exact.
CRIA_FN float exp(float x) {
  x = x < -87.336544f ? -87.336544f : x;
  x = x > 89.4f ? 89.4f : x;
  const float rounded = x * 1.44269504f + kRound, n = rounded - kRound;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 2.76292e-3f;
  p = p * r + 1.6737431e-2f;
  p = p * r + 8.333678e-2f;
  p = p * r + 3.3333042e-1f;
  p = p * r + 0.9999999f;
  p = p * r + 2.f;
  p = p * r + 2.f;
  return scale_half(p, rounded);
}

CRIA_FN float sigmoid(float x) { return 1.f / (1.f + exp(-x)); }
// NOTE: written as a quotient, g++ divides once more for the clamped ends of exp.
CRIA_FN float silu(float x) { return x * sigmoid(x); }

// An odd polynomial near zero, 1 - 2 / (e^2x + 1) elsewhere.
CRIA_FN float tanh(float x) {
  const float s = x * x;
  float p = -5.7049906e-3f;
  p = p * s + 2.063909e-2f;
  p = p * s - 5.3739715e-2f;
  p = p * s + 1.3331442e-1f;
  p = p * s - 3.333328e-1f;
  const float near = p * s * x + x;
  const float far = 1.f - 2.f / (exp(2.f * abs(x)) + 1.f);
  return abs(x) < 0.625f ? near : __builtin_copysignf(far, x);
}

// x = 2^e m with m in [1/sqrt 2, sqrt 2): ln m = (m-1) - (m-1)^2/2 + (m-1)^3 p(m-1).
struct LogParts {
  float exponent, mantissa, tail;  // ln x = exponent ln 2 + mantissa + tail
};
CRIA_FN LogParts log_parts(float x) {
  constexpr uint32_t kRootHalf = 0x3f3504f3u;  // 1/sqrt 2
  const uint32_t shifted = bits_of(x) - kRootHalf;
  const float e = static_cast<float>(static_cast<int32_t>(shifted) >> 23);
  const float m = float_of((shifted & 0x007fffffu) + kRootHalf) - 1.f;
  const float s = m * m;
  float p = -7.63443e-2f;
  p = p * m + 1.276155e-1f;
  p = p * m - 1.3160194e-1f;
  p = p * m + 1.4201762e-1f;
  p = p * m - 1.6623357e-1f;
  p = p * m + 2.0001227e-1f;
  p = p * m - 2.5000823e-1f;
  p = p * m + 3.333333e-1f;
  return {e, m, p * m * s - 0.5f * s};
}
CRIA_FN float log_limits(float x, float y) {
  y = x < std::numeric_limits<float>::min() ? -kInfinity : y;
  y = x < 0.f ? kNan : y;
  return x < kInfinity ? y : x;  // also NaN
}
CRIA_FN float log(float x) {
  const auto [e, m, tail] = log_parts(x);
  return log_limits(x, e * 0.693359375f + (m + (tail + e * -2.12194440e-4f)));
}
CRIA_FN float log2(float x) {
  const auto [e, m, tail] = log_parts(x);
  constexpr float kExcess = 0.44269504088896340735f;  // 1/ln 2 - 1
  return log_limits(x, e + (m + (tail + (m + tail) * kExcess)));
}

// x = q pi/2 + r, |r| <= pi/4, reduced in double: right to the last place for every |x| < 2^31.
struct Quarter {
  float r;
  uint32_t q;
};
CRIA_FN Quarter quarter_turns(float x) {
  constexpr double kRound52 = 6755399441055744.0;  // 1.5 * 2^52
  const double wide = x, rounded = wide * 0.63661977236758134308 + kRound52;
  const double q = rounded - kRound52;
  const double r = __builtin_fma(-q, 1.57079632679489655800, wide) - q * 6.12323399573676603587e-17;
  return {static_cast<float>(r), static_cast<uint32_t>(std::bit_cast<uint64_t>(rounded))};
}
// sin or cos of r by quadrant: odd quadrants exchange them, quadrants 2 and 3 change the sign.
CRIA_FN float sine_of(Quarter t) {
  const float s = t.r * t.r;
  const float sine = ((-1.9515218e-4f * s + 8.33216e-3f) * s - 1.6666655e-1f) * s * t.r + t.r;
  const float cosine =
      ((2.4433082e-5f * s - 1.3887315e-3f) * s + 4.1666646e-2f) * s * s - 0.5f * s + 1.f;
  const float y = (t.q & 1u) ? cosine : sine;
  return float_of(bits_of(y) ^ ((t.q & 2u) << 30));
}
CRIA_FN float sin(float x) { return sine_of(quarter_turns(x)); }
CRIA_FN float cos(float x) {
  auto turned = quarter_turns(x);
  turned.q += 1;
  return sine_of(turned);
}

// What a tile of memory type T holds once loaded.
template <class T>
using Loaded = std::conditional_t<std::is_integral_v<T>, int32_t, float>;

template <class T>
CRIA_FN Loaded<T> widen(T x) {
  if constexpr (std::is_integral_v<T>)
    return x;
  else
    return to_float(x);
}
template <class T, class E>
CRIA_FN T narrow(E x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(x);
  else
    return from_float<T>(static_cast<float>(x));
}
// x rounded to memory type T and widened again.
template <class T>
CRIA_FN float rounded_to(float x) {
  return to_float(from_float<T>(x));
}

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
