// How elementwise kernels walk matrices: row by row in blocks, or, when no operand has gaps between
// its rows, as one long row.
#pragma once

#include "kernels/config.h"
#include "kernels/list.h"

namespace cria::kernels {

// What one program works on: elements [start, start + block) of a row, those below `cols` at least.
struct Stretch {
  int row;
  int64_t start, cols;
};

struct Walk {
  int rows;
  int64_t cols;
  constexpr int blocks(int block) const { return static_cast<int>((cols + block - 1) / block); }
  constexpr Stretch stretch(int program, int block) const {
    if (rows == 1) return {0, int64_t{program} * block, cols};
    const int per_row = blocks(block);
    return {program / per_row, int64_t{program % per_row} * block, cols};
  }
};

template <class First, class... Rest>
constexpr Walk walk(const Tensor<First>& t, const Tensor<Rest>&... others) {
  const bool gaps = t.ld != t.cols || ((others.ld != others.cols) || ...);
  return gaps && t.rows > 1 ? Walk{t.rows, t.cols} : Walk{1, int64_t{t.rows} * t.cols};
}

template <class... T>
constexpr Grid elementwise_grid(int block, const Tensor<T>&... t) {
  const Walk w = walk(t...);
  return {int64_t{w.rows} * w.blocks(block)};
}

// Enough bytes in flight per thread to cover memory latency, in pieces small enough for narrow
// rows.
template <template <class, class> class K, class T>
using ElementwiseSpace =
    KernelSpace<K, T, BlockConfig<2048, 256>, BlockConfig<4096, 256>, BlockConfig<1024, 128>>;

}  // namespace cria::kernels
