// Around the mistakes of docs/tile.md: kernels that must not compile. docs/misuse_test.cpp compiles
// them and looks for the sentences that the page promises.
#pragma once

#include "docs/vector_add.h"

#if defined(CRIA_TARGET_CUDA)
#include "kernels/bind/cuda.h"
#else
#include "kernels/bind/cpu.h"
#endif

namespace cria::docs {

// What a kernel needs besides its body.
struct Misuse {
  using Element = float;
  using Config = BlockConfig<1024, 128>;
  using Args = VectorAddArgs<float>;
  static constexpr Traits traits{.threads = 128};
  static Grid grid(const Args&) { return {1}; }
};

}  // namespace cria::docs
