// Runs a kernel struct in the tracer; the context is a tile::Trace.
#pragma once

#include "runtime/kernel.h"
#include "tile/aligned.h"
#include "tile/target.h"

namespace cria::kernels {

inline constexpr Target kBoundTarget = Target::trace;

template <class K>
struct Binding {
  using Args = typename K::Args;
  static constexpr bool wanted = true;
  // As on the GPU that is traced: TMA needs aligned operands.
  static bool fits(const Args& args, int) {
    return K::traits.lowering != tile::Lowering::kHopper || tile::suits_tma(args);
  }
  static void run(void* context, const Args& args) {
    tile::trace<K>(args, *static_cast<tile::Trace*>(context));
  }
  static KernelResources resources() { return {.threads = K::traits.threads}; }
};

}  // namespace cria::kernels
