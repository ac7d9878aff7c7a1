// Tuning parameters that several kernels share.
#pragma once

#include <string>

#include "kernels/list.h"

namespace cria::kernels {

// Elements that a program holds at once, and the threads that share them on a GPU.
template <int Rows, int Cols, int Threads>
struct TileConfig {
  static constexpr int rows = Rows, cols = Cols, threads = Threads;
  static std::string name() {
    const std::string shape = rows == 1 ? "block" : "tile" + std::to_string(rows) + "x";
    return shape + std::to_string(cols) + "_threads" + std::to_string(threads);
  }
};
template <int Block, int Threads>
using BlockConfig = TileConfig<1, Block, Threads>;

// A configuration that differs from one before it in nothing that a CPU knows of: in threads, or in
// how many programs are resident.
template <class C>
struct GpuOnly : C {
  static constexpr bool gpu_only = true;
};

// Whether a kernel for memory type T multiplies in the wanted precision in configuration C. Where
// there is no tf32, fp32 is multiplied as fp32.
template <class T, class C>
constexpr bool multiplies_in(DotPrecision wanted) {
  return sizeof(T) == 2 || !kHasTf32 || C::traits.dot == wanted;
}

}  // namespace cria::kernels
