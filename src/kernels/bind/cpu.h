// Runs a kernel struct on the process's thread pool.
#pragma once

#include "runtime/kernel.h"
#include "runtime/thread_pool.h"
#include "tile/target.h"

namespace cria::kernels {

inline constexpr Target kBoundTarget = Target::cpu;

template <class K>
struct Binding {
  using Args = typename K::Args;
  // A CPU has no use for a second way to do the same with a block.
  static constexpr bool wanted = K::traits.lowering == tile::Lowering::kAmpere && !requires {
    K::Config::gpu_only;
  }
  &&(sizeof(typename K::Element) == 2 || K::traits.dot == tile::DotPrecision::kFp32);
  static bool fits(const Args&, int) { return true; }
  static void run(void*, const Args& args) { tile::launch<K>(ThreadPool::shared(), args); }
  static KernelResources resources() { return {.threads = K::traits.threads}; }
};

}  // namespace cria::kernels
