// What a program can do before the launch before it is done: ask for operands to come nearer.
#pragma once

#include "tile/cuda/program_base.h"
#include "tile/cuda/ptx/copy.h"

namespace cria::tile {
inline namespace cuda {

template <class K>
struct AheadProgram : ProgramId {
  // The lines of a block, towards the L2 cache: whoever still writes there does not matter.
  template <class T, int M, int N>
  CRIA_FN void prefetch(Tensor<T> t, Shape<M, N>, int r0, int c0, int batch = 0) const {
    constexpr int line = 128 / int(sizeof(T)), lines = ceil_div(N, line);
    const int rows = min_of(M, t.rows - r0), cols = t.cols - c0;
    for (int i = threadIdx.x; i < rows * lines; i += K::traits.threads) {
      const int c = i % lines * line;
      if (c < cols) ptx::prefetch_line(t.at(batch, r0 + i / lines, c0 + c));
    }
  }
};

}  // namespace cuda
}  // namespace cria::tile
