// Asynchronous copies: cp.async (sm_80) and the bulk tensor engine, TMA (sm_90).
#pragma once

#include <cstdint>

namespace cria::tile::ptx {

// 16 bytes; zeros, and nothing read, where the source does not count.
__device__ __forceinline__ void copy_async_16(uint32_t shared, const void* global, bool counts) {
  asm volatile(
      "{\n.reg .pred ignored;\nsetp.eq.u32 ignored, %2, 0;\n"
      "cp.async.cg.shared.global [%0], [%1], 16, ignored;\n}\n" ::"r"(shared),
      "l"(global), "r"(uint32_t{counts})
      : "memory");
}
// The first `bytes` of 16, and zeros; nothing is read where these are none.
__device__ __forceinline__ void copy_async_first(uint32_t shared, const void* global,
                                                 uint32_t bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void copy_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// A line of memory towards the L2 cache: a hint, which changes nothing that can be read.
__device__ __forceinline__ void prefetch_line(const void* global) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}

__device__ __forceinline__ void tma_prefetch_map(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
struct TmaPoint {
  int col, row, head, group;
};
// The box of a rank-4 map at `at`, into shared memory, completing on `bar`.
__device__ __forceinline__ void tma_load(uint32_t shared, const void* map, TmaPoint at,
                                         uint32_t bar) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared),
      "l"(map), "r"(at.col), "r"(at.row), "r"(at.head), "r"(at.group), "r"(bar)
      : "memory");
}
__device__ __forceinline__ void tma_store(const void* map, TmaPoint at, uint32_t shared) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group "
      "[%0, {%1, %2, %3, %4}], [%5];" ::"l"(map),
      "r"(at.col), "r"(at.row), "r"(at.head), "r"(at.group), "r"(shared)
      : "memory");
}
__device__ __forceinline__ void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// At most N committed stores still have to read their shared memory.
template <int N>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

}  // namespace cria::tile::ptx
