// Tuning parameters that several kernels share.
#pragma once

#include <string>

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

}  // namespace cria::kernels
