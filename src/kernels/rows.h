// The tuning space of kernels that reduce along rows: a program holds one wide row or several
// narrow ones.
#pragma once

#include "kernels/config.h"
#include "kernels/list.h"

namespace cria::kernels {

// Rows x Cols per program. Walks: rows wider than Cols are walked in blocks, else they do not fit.
// Resident: programs per multiprocessor that the registers must allow.
template <int Rows, int Cols, int Threads, bool Walks = false, int Resident = 1>
struct RowConfig : TileConfig<Rows, Cols, Threads> {
  static_assert(!Walks || Rows == 1, "RowConfig: only a single row is walked");
  static constexpr bool walks = Walks;
  static constexpr Traits traits{.threads = Threads, .min_blocks = Resident};
  static constexpr bool fits(int cols) { return cols <= Cols || Walks; }
};

// Blocks of rows, of each matrix of a batch.
template <class C, class T>
constexpr Grid row_grid(const Tensor<T>& t) {
  return {t.cols > 0 ? ceil_div(t.rows, C::rows) : 0, t.batch};
}

// First choice first: the narrowest tile that holds a row. Long rows of 16-bit elements want two
// vectors per thread and all the programs that then fit, `Resident`, to keep enough bytes on their
// way.
template <template <class, class> class K, class T, int Resident>
struct RowSpaceOf {
  using type = KernelSpace<K, T, RowConfig<64, 64, 256>, RowConfig<16, 256, 256>,
                           RowConfig<1, 1024, 128>, RowConfig<1, 2048, 128>,
                           RowConfig<1, 4096, 256, false, Resident>, RowConfig<1, 8192, 512, true>>;
};
template <template <class, class> class K, int Resident>
struct RowSpaceOf<K, float, Resident> {
  using type = KernelSpace<K, float, RowConfig<64, 64, 256>, RowConfig<16, 256, 256>,
                           RowConfig<1, 1024, 128>, RowConfig<1, 2048, 256>,
                           RowConfig<1, 4096, 512>, RowConfig<1, 8192, 512, true>>;
};
template <template <class, class> class K, class T, int Resident = 6>
using RowSpace = typename RowSpaceOf<K, T, Resident>::type;

}  // namespace cria::kernels
