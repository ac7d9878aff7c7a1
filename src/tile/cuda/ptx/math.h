// Single-instruction arithmetic without a C spelling.
#pragma once

#include <cstdint>

namespace cria::tile::ptx {

// x, in a way that hides from the compiler what was computed from it before: it will not keep that.
__device__ __forceinline__ uint32_t opaque(uint32_t x) {
  asm volatile("" : "+r"(x));
  return x;
}

// Has x read here.
__device__ __forceinline__ void touch(uint32_t x) { asm volatile("" ::"r"(x)); }

__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
  uint32_t r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
__device__ __forceinline__ uint32_t pack_f16(float low, float high) {
  uint32_t r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

}  // namespace cria::tile::ptx
