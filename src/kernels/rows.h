// The tuning space of kernels that reduce along rows: a program holds one wide row or several
// narrow ones.
#pragma once

#include "kernels/config.h"
#include "kernels/list.h"

namespace cria::kernels {

// Rows x Cols per program. Walks: rows wider than Cols are walked in blocks, else they do not fit.
template <int Rows, int Cols, int Threads, bool Walks = false>
struct RowConfig : TileConfig<Rows, Cols, Threads> {
  static_assert(!Walks || Rows == 1, "RowConfig: only a single row is walked");
  static constexpr bool walks = Walks;
  static constexpr bool fits(int cols) { return cols <= Cols || Walks; }
};

template <class C, class T>
constexpr Grid row_grid(const Tensor<T>& t) {
  return {t.cols > 0 ? ceil_div(t.rows, C::rows) : 0};
}

// First choice first: the narrowest tile that holds a row.
template <template <class, class> class K, class T>
using RowSpace =
    KernelSpace<K, T, RowConfig<64, 64, 256>, RowConfig<16, 256, 256>, RowConfig<1, 1024, 128>,
                RowConfig<1, 2048, 256>, RowConfig<1, 4096, 512>, RowConfig<1, 8192, 512, true>>;

}  // namespace cria::kernels
