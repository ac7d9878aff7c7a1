#include "base/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "base/rng.h"
#include "runtime/cpu/float_mode.h"

namespace cria {
namespace {

float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }

// The compiler's own half precision is the oracle.
uint16_t oracle_f16(float x) { return std::bit_cast<uint16_t>(static_cast<_Float16>(x)); }
float oracle_float(uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }

// Round to nearest even by choosing between the two neighbours in double arithmetic.
uint16_t oracle_bf16(float x) {
  const auto down = static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
  const auto up = static_cast<uint16_t>(down + 1);
  const auto value = [](uint16_t bits) {
    // One step past the largest finite value counts as 2^128 in rounding.
    const uint32_t wide = uint32_t{bits} << 16;
    return (bits & 0x7fff) == 0x7f80 ? std::copysign(0x1p128, float_of(wide)) : float_of(wide);
  };
  const double to_down = std::abs(x - static_cast<double>(value(down)));
  const double to_up = std::abs(static_cast<double>(value(up)) - x);
  if (to_down != to_up) return to_down < to_up ? down : up;
  return down % 2 == 0 ? down : up;
}

bool is_nan_f16(uint16_t bits) { return (bits & 0x7fff) > 0x7c00; }
bool is_nan_bf16(uint16_t bits) { return (bits & 0x7fff) > 0x7f80; }

TEST(DType, EveryF16BecomesTheRightFloatAndBack) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const f16 x{static_cast<uint16_t>(i)};
    if (is_nan_f16(x.bits)) {
      ASSERT_TRUE(std::isnan(to_float(x))) << i;
      ASSERT_TRUE(is_nan_f16(from_float<f16>(to_float(x)).bits)) << i;
      continue;
    }
    ASSERT_EQ(std::bit_cast<uint32_t>(to_float(x)), std::bit_cast<uint32_t>(oracle_float(x.bits)))
        << i;
    ASSERT_EQ(from_float<f16>(to_float(x)).bits, x.bits) << i;
  }
}

TEST(DType, EveryBf16ComesBack) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const bf16 x{static_cast<uint16_t>(i)};
    if (is_nan_bf16(x.bits)) {
      ASSERT_TRUE(std::isnan(to_float(x))) << i;
      ASSERT_TRUE(is_nan_bf16(from_float<bf16>(to_float(x)).bits)) << i;
      continue;
    }
    ASSERT_EQ(from_float<bf16>(to_float(x)).bits, x.bits) << i;
  }
}

TEST(DType, F16SurvivesFlushedSubnormals) {
  const FlushSubnormals flush;
  for (uint32_t i = 0; i < 0x7c00; ++i) {
    const volatile uint32_t bits = i;  // keeps the compiler from folding the loop
    const f16 x{static_cast<uint16_t>(bits)};
    ASSERT_EQ(from_float<f16>(to_float(x)).bits, x.bits) << i;
  }
}

TEST(DType, RoundsAnyFloatToNearestEven) {
  Rng rng(1);
  for (int i = 0; i < 2'000'000; ++i) {
    // Random bits, with the low half often at or next to a tie.
    uint32_t bits = static_cast<uint32_t>(rng.bits());
    if (i % 4 == 1) bits = (bits & ~0xffffu) | 0x8000u;
    if (i % 4 == 2) bits = (bits & ~0x1fffu) | 0x1000u;
    if (i % 4 == 3) bits = (bits & ~0x1fffu) | 0x0fffu;
    const float x = float_of(bits);
    if (std::isnan(x)) {
      ASSERT_EQ(from_float<f16>(x).bits, 0x7fff);
      ASSERT_EQ(from_float<bf16>(x).bits, 0x7fff);
      continue;
    }
    ASSERT_EQ(from_float<f16>(x).bits, oracle_f16(x)) << std::hexfloat << x;
    if (std::isfinite(x)) {
      ASSERT_EQ(from_float<bf16>(x).bits, oracle_bf16(x)) << std::hexfloat << x;
    }
  }
}

TEST(DType, KnownValues) {
  static_assert(from_float<bf16>(1.0f).bits == 0x3f80);
  static_assert(from_float<f16>(1.0f).bits == 0x3c00);
  static_assert(to_float(f16{0x0001}) == 0x1p-24f);
  EXPECT_EQ(from_float<f16>(65519.0f).bits, 0x7bff);
  EXPECT_EQ(from_float<f16>(65520.0f).bits, 0x7c00);
  EXPECT_EQ(from_float<f16>(-0.0f).bits, 0x8000);
  EXPECT_EQ(from_float<f16>(0x1p-25f).bits, 0x0000);  // a tie, to even
  EXPECT_EQ(from_float<f16>(0x1.8p-25f).bits, 0x0001);
  EXPECT_EQ(from_float<bf16>(INFINITY).bits, 0x7f80);
  EXPECT_EQ(from_float<bf16>(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(from_float<bf16>(-INFINITY).bits, 0xff80);
}

// x comes back bit for bit, and its high half is the nearest bf16, the one away from zero in a tie.
void check_halves(uint32_t bits) {
  const float x = float_of(bits);
  const bf16 high = high_half(x);
  const int16_t low = low_half(x);
  const float joined = join_halves(to_float(high), low);
  if (std::isnan(x)) {
    ASSERT_TRUE(is_nan_bf16(high.bits)) << std::hex << bits;
    ASSERT_TRUE(std::isnan(joined)) << std::hex << bits;
    return;
  }
  ASSERT_EQ(std::bit_cast<uint32_t>(joined), bits) << std::hex << bits;
  const bool tie = (bits & 0xffffu) == 0x8000u;
  const uint16_t nearest = tie ? uint16_t((bits >> 16) + 1) : from_float<bf16>(x).bits;
  ASSERT_EQ(high.bits, nearest) << std::hex << bits;
}

TEST(DType, HalvesOfAFloatJoinToIt) {
  static_assert(high_half(1.0f).bits == 0x3f80 && low_half(1.0f) == 0);
  static_assert(high_half(0x1.01p0f).bits == 0x3f81 && low_half(0x1.01p0f) == -0x8000);
  static_assert(join_halves(1.0f, -1) == 0x1.fffffep-1f);
  for (uint32_t high = 0; high < 0x10000; ++high)  // zeros, denormals, infinities, NaN, both signs
    for (const uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      check_halves(high << 16 | low);
  Rng rng(2);
  for (int i = 0; i < 1'000'000; ++i) check_halves(static_cast<uint32_t>(rng.bits()));
}

TEST(DType, IntegersTruncateAndSaturate) {
  EXPECT_EQ(from_float<int32_t>(-2.9f), -2);
  EXPECT_EQ(from_float<int32_t>(3e9f), std::numeric_limits<int32_t>::max());
  EXPECT_EQ(from_float<int32_t>(-3e9f), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(from_float<int32_t>(NAN), 0);
}

TEST(DType, NamesSizesAndTypesAgree) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16, DType::i32}) {
    EXPECT_EQ(parse_dtype(name_of(type)), type);
    with_dtype(type, [&](auto zero) {
      EXPECT_EQ(dtype_of<decltype(zero)>, type);
      EXPECT_EQ(dtype_of<const decltype(zero)>, type);
      EXPECT_EQ(sizeof(zero), size_of(type));
      EXPECT_EQ(to_float(zero), 0.0f);
    });
  }
  EXPECT_EQ(parse_dtype("float32"), DType::f32);
  EXPECT_EQ(parse_dtype("bfloat16"), DType::bf16);
  EXPECT_EQ(parse_dtype("fp16"), DType::f16);
}

TEST(DType, UnknownNameSaysWhatToUse) {
  for (const char* name : {"", "f64", "F32 ", "float8"}) {
    try {
      parse_dtype(name);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("use f32, bf16, f16 or i32"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace cria
