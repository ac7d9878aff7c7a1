// wgmma: asynchronous products of a warpgroup (sm_90a), m64 nN k16, bf16 or f16, fp32 accumulators.
// A from registers (_rs) or from shared memory (_ss); B from shared memory. TransA/TransB = 1 reads
// an operand stored with its M or N dimension contiguous. `accumulate` = 0 overwrites the
// accumulator.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "tile/shape.h"

namespace cria::tile::ptx {

__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
// Keeps the compiler from moving accesses to an in-flight accumulator across this point.
__device__ __forceinline__ void pin(float& x) { asm volatile("" : "+f"(x)::"memory"); }
__device__ __forceinline__ void pin(uint32_t& x) { asm volatile("" : "+r"(x)::"memory"); }

template <int Registers>
__device__ __forceinline__ void set_registers_up() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ __forceinline__ void set_registers_down() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

// Operand lists: names of the first 32, 64, 96 and 128 accumulators, and their bindings.
#define CRIA_WGMMA_D32                                                               \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, " \
  "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define CRIA_WGMMA_D64                                                               \
  CRIA_WGMMA_D32                                                                     \
  ", "                                                                               \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define CRIA_WGMMA_D96                                                               \
  CRIA_WGMMA_D64                                                                     \
  ", "                                                                               \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define CRIA_WGMMA_D128                                                              \
  CRIA_WGMMA_D96                                                                     \
  ", "                                                                               \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, " \
  "%110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, "   \
  "%123, %124, %125, %126, %127"
#define CRIA_WGMMA_BIND32                                                                         \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
      "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),    \
      "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),  \
      "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),  \
      "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define CRIA_WGMMA_BIND64                                                                          \
  CRIA_WGMMA_BIND32, "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), \
      "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]),   \
      "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]),   \
      "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]),   \
      "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
#define CRIA_WGMMA_BIND96                                                                          \
  CRIA_WGMMA_BIND64, "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), \
      "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]),   \
      "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]),   \
      "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]),   \
      "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
#define CRIA_WGMMA_BIND128                                                                \
  CRIA_WGMMA_BIND96, "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]),    \
      "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), \
      "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), \
      "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), \
      "+f"(d[119]), "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), \
      "+f"(d[125]), "+f"(d[126]), "+f"(d[127])

#define CRIA_WGMMA(N, COUNT, TYPE, NAME, A0, A1, A2, A3, A4, A5, A6)                               \
  template <int TransB>                                                                            \
  __device__ __forceinline__ void wgmma_rs(Type<TYPE>, Shape<N>, float* d, const uint32_t* a,      \
                                           uint64_t b, int accumulate) {                           \
    asm volatile(                                                                                  \
        "{\n.reg .pred p;\nsetp.ne.b32 p, %" A6                                                    \
        ", 0;\n"                                                                                   \
        "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." NAME "." NAME " {" CRIA_WGMMA_D##COUNT   \
        "}, {%" A0 ", %" A1 ", %" A2 ", %" A3 "}, %" A4 ", p, 1, 1, %" A5 ";\n}"                   \
        : CRIA_WGMMA_BIND##COUNT                                                                   \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TransB), "r"(accumulate));       \
  }                                                                                                \
  template <int TransA, int TransB>                                                                \
  __device__ __forceinline__ void wgmma_ss(Type<TYPE>, Shape<N>, float* d, uint64_t a, uint64_t b, \
                                           int accumulate) {                                       \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" A4                                           \
                 ", 0;\n"                                                                          \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." NAME "." NAME                   \
                 " {" CRIA_WGMMA_D##COUNT "}, %" A0 ", %" A1 ", p, 1, 1, %" A2 ", %" A3 ";\n}"     \
                 : CRIA_WGMMA_BIND##COUNT                                                          \
                 : "l"(a), "l"(b), "n"(TransA), "n"(TransB), "r"(accumulate));                     \
  }

CRIA_WGMMA(64, 32, bf16, "bf16", "32", "33", "34", "35", "36", "37", "38")
CRIA_WGMMA(64, 32, f16, "f16", "32", "33", "34", "35", "36", "37", "38")
CRIA_WGMMA(128, 64, bf16, "bf16", "64", "65", "66", "67", "68", "69", "70")
CRIA_WGMMA(128, 64, f16, "f16", "64", "65", "66", "67", "68", "69", "70")
CRIA_WGMMA(192, 96, bf16, "bf16", "96", "97", "98", "99", "100", "101", "102")
CRIA_WGMMA(192, 96, f16, "f16", "96", "97", "98", "99", "100", "101", "102")
CRIA_WGMMA(256, 128, bf16, "bf16", "128", "129", "130", "131", "132", "133", "134")
CRIA_WGMMA(256, 128, f16, "f16", "128", "129", "130", "131", "132", "133", "134")

#undef CRIA_WGMMA
#undef CRIA_WGMMA_D32
#undef CRIA_WGMMA_D64
#undef CRIA_WGMMA_D96
#undef CRIA_WGMMA_D128
#undef CRIA_WGMMA_BIND32
#undef CRIA_WGMMA_BIND64
#undef CRIA_WGMMA_BIND96
#undef CRIA_WGMMA_BIND128

// Shared-memory operand descriptor: 128-byte swizzle, strides in bytes.
__device__ __forceinline__ uint64_t wgmma_descriptor(uint32_t address, uint32_t leading_stride,
                                                     uint32_t group_stride) {
  return uint64_t((address & 0x3ffff) >> 4) | uint64_t(leading_stride >> 4) << 16 |
         uint64_t(group_stride >> 4) << 32 | uint64_t(1) << 62;
}

}  // namespace cria::tile::ptx
