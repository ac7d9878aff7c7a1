// y = xᵀ, four times: a ladder whose rungs differ in what they do to memory.
//   row_wise         a program takes a row, each thread walks a run of it: loads and stores are
//                    scattered
//   coalesced_loads  a program takes a tile, threads side by side along its rows: stores are still
//                    scattered
//   tiled            the tile turns in shared memory, so stores are coalesced too; columns of the
//                    staged tile all lie in the same banks
//   padded           each staged row is one element longer, which spreads a column over the banks
#pragma once

#include "kernels/config.h"
#include "kernels/list.h"

namespace cria::kernels {

enum class TransposeRung { kRowWise, kCoalescedLoads, kTiled, kPadded };
inline constexpr const char* kTransposeNames[] = {"transpose_row_wise", "transpose_coalesced_loads",
                                                  "transpose_tiled", "transpose_padded"};

template <class T, TransposeRung Rung>
struct TransposeArgs {
  using Element = T;
  static constexpr const char* kernel = kTransposeNames[static_cast<int>(Rung)];
  Tensor<const T> x;  // [M, N]
  Tensor<T> y;        // [N, M]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("y", y);
  }
  Dims dims() const { return {{"rows", x.rows}, {"cols", x.cols}}; }
  Cost cost() const {
    return {.bytes_read = double(x.bytes()), .bytes_written = double(y.bytes())};
  }
};
template <class T>
using TransposeRowWiseArgs = TransposeArgs<T, TransposeRung::kRowWise>;
template <class T>
using TransposeCoalescedLoadsArgs = TransposeArgs<T, TransposeRung::kCoalescedLoads>;
template <class T>
using TransposeTiledArgs = TransposeArgs<T, TransposeRung::kTiled>;
template <class T>
using TransposePaddedArgs = TransposeArgs<T, TransposeRung::kPadded>;

template <class T, class C>
struct TransposeRowWise {
  using Element = T;
  using Config = C;
  using Args = TransposeRowWiseArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return {a.x.cols > 0 ? a.x.rows : 0}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int r = p.program_id(0), n = a.x.cols;
    for (int start = 0; start < n; start += C::cols) {
      auto j = p.arange(shape<C::cols>) + start;
      auto x = p.load(Runs<C::cols, C::threads>{}, a.x.row(r), j, j < n);
      p.store(a.y.data + r, j * a.y.ld, x, j < n);
    }
  }
};

// Where a program's tile lies. Tiles are counted down the columns of x, so that neighbouring
// programs write neighbouring memory.
template <class C, class T>
constexpr Grid tile_grid(const Tensor<T>& x) {
  return {int64_t{ceil_div(x.rows, C::rows)} * ceil_div(x.cols, C::cols)};
}
template <class C, class T>
constexpr TileIndex tile_at(const Tensor<T>& x, int program) {
  const int down = ceil_div(x.rows, C::rows);
  return {program % down * C::rows, program / down * C::cols};
}

template <class T, class C>
struct TransposeCoalescedLoads {
  using Element = T;
  using Config = C;
  using Args = TransposeCoalescedLoadsArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return tile_grid<C>(a.x); }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const auto [r0, c0] = tile_at<C>(a.x, p.program_id(0));
    auto i = column(p.arange(shape<C::rows>) + r0);
    auto j = row(p.arange(shape<C::cols>) + c0);
    const Mask mask = i < a.x.rows && j < a.x.cols;
    p.store(a.y.data, i + j * a.y.ld, p.load(a.x.data, i * a.x.ld + j, mask), mask);
  }
};

template <class T, class C, TransposeRung Rung, int Padding>
struct TransposeStaged {
  using Element = T;
  using Config = C;
  using Args = TransposeArgs<T, Rung>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return tile_grid<C>(a.x); }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const auto [r0, c0] = tile_at<C>(a.x, p.program_id(0));
    auto x = p.load(a.x, shape<C::rows, C::cols>, r0, c0);
    p.store(a.y, p.trans(x, pad<Padding>), c0, r0);
  }
};
template <class T, class C>
using TransposeTiled = TransposeStaged<T, C, TransposeRung::kTiled, 0>;
// NOTE: a padded tile of 64 x 64 keeps one bank conflict per request. Its rows are 16 lanes of 16
// bytes, two rows to a warp, so lane k of row r stores at 4 k (64 + padding) + r: whatever the
// padding, 4 k takes 8 banks, and with two rows that is half of the 32. Tiles of 32 x 32 (8 lanes, 4
// rows) and accesses of 4 bytes have none and are slower all the same: docs/dead-ends.md.
template <class T, class C>
using TransposePadded = TransposeStaged<T, C, TransposeRung::kPadded, 1>;

template <class T>
using TransposeKernels =
    KernelList<KernelSpace<TransposeRowWise, T, BlockConfig<1024, 256>>,
               KernelSpace<TransposeCoalescedLoads, T, TileConfig<64, 64, 256>>,
               KernelSpace<TransposeTiled, T, TileConfig<64, 64, 256>>,
               KernelSpace<TransposePadded, T, TileConfig<64, 64, 512>,
                           GpuOnly<TileConfig<64, 64, 256>>, TileConfig<32, 32, 128>>>;

}  // namespace cria::kernels
