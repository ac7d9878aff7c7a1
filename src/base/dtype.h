// Element types: their names, sizes, and conversions through float. Conversions round to nearest
// even, keep subnormals and infinities, and turn any NaN into the canonical one, as NVIDIA GPUs do.
// They are branch-free so that loops over them vectorise, and exact under FTZ/DAZ.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "base/error.h"

namespace cria {

enum class DType { f32, bf16, f16, i32 };

struct bf16 {
  uint16_t bits;
};

struct f16 {
  uint16_t bits;
};

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> : std::integral_constant<DType, DType::f32> {};
template <>
struct DTypeOf<bf16> : std::integral_constant<DType, DType::bf16> {};
template <>
struct DTypeOf<f16> : std::integral_constant<DType, DType::f16> {};
template <>
struct DTypeOf<int32_t> : std::integral_constant<DType, DType::i32> {};

// The DType of a C++ element type; const is ignored.
template <class T>
inline constexpr DType dtype_of = DTypeOf<std::remove_cv_t<T>>::value;

constexpr size_t size_of(DType type) { return type == DType::bf16 || type == DType::f16 ? 2 : 4; }

constexpr const char* name_of(DType type) {
  switch (type) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::i32:
      return "i32";
  }
  return "unknown";
}

// Accepts the names above and the usual long forms (fp32, float32, bfloat16, half, int32, ...).
DType parse_dtype(std::string_view name);

// Calls f(T{}) with the C++ type of a run-time DType.
template <class F>
decltype(auto) with_dtype(DType type, F&& f) {
  switch (type) {
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(bf16{});
    case DType::f16:
      return f(f16{});
    case DType::i32:
      return f(int32_t{});
  }
  fail("with_dtype: not a DType");
}

constexpr float to_float(float x) { return x; }
constexpr float to_float(int32_t x) { return static_cast<float>(x); }
constexpr float to_float(bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }

constexpr float to_float(f16 x) {
  constexpr uint32_t kRebias = (127 - 15) << 23;
  constexpr uint32_t kMinNormal = (127 - 14) << 23;  // 2^-14
  const uint32_t magnitude = uint32_t{x.bits & 0x7fffu} << 13;
  const uint32_t exponent = magnitude & 0x0f800000u;
  const uint32_t normal = magnitude + (exponent == 0x0f800000u ? 2 * kRebias : kRebias);
  // A subnormal's mantissa under the exponent of 2^-14; taking 2^-14 off again leaves the value
  // without ever forming a float subnormal, which DAZ would drop.
  const float lifted = std::bit_cast<float>(magnitude + kMinNormal);
  const uint32_t tiny = std::bit_cast<uint32_t>(lifted - std::bit_cast<float>(kMinNormal));
  const uint32_t sign = uint32_t{x.bits & 0x8000u} << 16;
  return std::bit_cast<float>(sign | (exponent == 0 ? tiny : normal));
}

namespace detail {

constexpr bf16 to_bf16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
  return {static_cast<uint16_t>(nan ? 0x7fffu : rounded)};
}

constexpr f16 to_f16(float x) {
  constexpr uint32_t kRebias = (127 - 15) << 23;
  constexpr uint32_t kMinNormal = (127 - 14) << 23;  // 2^-14
  constexpr uint32_t kOverflow = (127 + 16) << 23;   // 2^16
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = u & 0x7fffffffu;
  const uint32_t normal = (magnitude - kRebias + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Adding 0.5 lines the last place of a float up with the last place of an f16 subnormal.
  const float lifted = std::bit_cast<float>(magnitude < kMinNormal ? magnitude : 0u) + 0.5f;
  const uint32_t tiny = std::bit_cast<uint32_t>(lifted) - std::bit_cast<uint32_t>(0.5f);
  uint32_t value = magnitude < kMinNormal ? tiny : normal;
  value = magnitude >= kOverflow ? 0x7c00u : value;
  value |= (u >> 16) & 0x8000u;
  value = magnitude > 0x7f800000u ? 0x7fffu : value;
  return {static_cast<uint16_t>(value)};
}

// Toward zero, saturating, NaN to 0.
constexpr int32_t to_i32(float x) {
  if (x != x) return 0;
  if (x >= 2147483648.0f) return std::numeric_limits<int32_t>::max();
  if (x < -2147483648.0f) return std::numeric_limits<int32_t>::min();
  return static_cast<int32_t>(x);
}

}  // namespace detail

template <class T>
constexpr T from_float(float x) {
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else if constexpr (std::is_same_v<T, bf16>) {
    return detail::to_bf16(x);
  } else if constexpr (std::is_same_v<T, f16>) {
    return detail::to_f16(x);
  } else {
    static_assert(std::is_same_v<T, int32_t>, "from_float: T must be float, bf16, f16 or int32_t");
    return detail::to_i32(x);
  }
}

// A float in two halves: a bf16, rounded to nearest with ties away from zero, and what it lacks,
// bits(x) = (bits(high) << 16) + low. Joined they are x bit for bit; a NaN stays a NaN, in its high
// half alone too.
constexpr bf16 high_half(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
  return {static_cast<uint16_t>(nan ? 0x7fffu : (u + 0x8000u) >> 16)};
}
// The last 16 bits, as a signed number: negative where the high half was rounded up.
constexpr int16_t low_half(float x) { return static_cast<int16_t>(std::bit_cast<uint32_t>(x)); }
// From the halves' values.
constexpr float join_halves(float high, int32_t low) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(high) + static_cast<uint32_t>(low));
}

}  // namespace cria
