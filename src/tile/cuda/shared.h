// Shared-memory tiles in the one layout that cp.async, ldmatrix, wgmma and TMA agree on: panels of
// 128-byte rows, whose eight 16-byte chunks are XOR-swizzled by the row.
#pragma once

#include "tile/cuda/ptx/mma.h"
#include "tile/cuda/ptx/sync.h"
#include "tile/cuda/tile.h"

namespace cria::tile {
inline namespace cuda {

template <class T, int Rows, int Cols>
struct View {
  static constexpr int rows = Rows, cols = Cols;
  static constexpr int chunk = 16 / sizeof(T), panel_cols = 128 / sizeof(T),
                       panel_bytes = Rows * 128;
  static_assert(Rows % 8 == 0, "a shared tile has a multiple of 8 rows (the swizzle's period)");
  static_assert(Cols % panel_cols == 0, "a shared tile's rows are whole 128-byte panels");
  uint32_t address;
  // The same memory as a tile of another shape, to be filled anew.
  template <int R, int C>
  CRIA_FN View<T, R, C> as(Shape<R, C>) const {
    static_assert(R * C <= Rows * Cols, "as: the other shape must fit into the tile's memory");
    return {address};
  }
  // Byte offset of 16-byte chunk `k` of row r.
  static constexpr int chunk_offset(int r, int k) {
    return k / 8 * panel_bytes + swizzled(r, k % 8);
  }
  static constexpr int offset(int r, int c) {
    return chunk_offset(r, c / chunk) + c % chunk * int(sizeof(T));
  }
  // From one of these offsets, `rows` down (a multiple of 8) and `chunks` to the right, of a chunk
  // in a place that shares no bits with `chunks`: one instruction where the rest is known, at most.
  static constexpr int moved(int offset, int rows, int chunks) {
    return (offset ^ chunks % 8 * 16) + chunks / 8 * panel_bytes + rows * 128;
  }
};

// A view read with rows and columns exchanged, as an operand of dot.
template <class V>
struct Transposed {
  static constexpr int rows = V::cols, cols = V::rows;
  V view;
};
template <class T, int R, int C>
CRIA_FN Transposed<View<T, R, C>> trans(View<T, R, C> v) {
  return {v};
}

// `Count` tiles of Rows x Cols: the stages of a pipeline, or one operand.
template <class T, int Rows, int Cols, int Count = 1>
struct SharedTile {
  using V = View<T, Rows, Cols>;
  static constexpr int tile_bytes = Rows * Cols * int(sizeof(T));
  alignas(1024) unsigned char bytes[Count * tile_bytes];
  CRIA_FN V operator[](int i) const { return {ptx::shared_address(bytes) + i * tile_bytes}; }
  // Tiles i and i + 1, one below the other, as one operand of dot.
  CRIA_FN View<T, 2 * Rows, Cols> stacked(int i) const {
    static_assert(Cols == V::panel_cols, "stacked: tiles one 128-byte panel wide");
    return {(*this)[i].address};
  }
};

// Accumulators set aside, `Count` of Rows x Cols, each thread's part where only that thread finds
// it.
template <int Rows, int Cols>
struct Saved {
  uint32_t address;
  // The same memory as a tile of T, to be filled anew.
  template <class T>
  CRIA_FN View<T, Rows, Cols> as(Type<T>) const {
    return {address};
  }
};
template <int Rows, int Cols, int Count>
struct SavedAccumulators {
  alignas(1024) float data[Count][Rows * Cols];
  CRIA_FN Saved<Rows, Cols> operator[](int i) const { return {ptx::shared_address(data[i])}; }
};

template <class T, int R, int C>
CRIA_FN float read_element(View<T, R, C> v, int r, int c) {
  if constexpr (sizeof(T) == 4)
    return __uint_as_float(ptx::load_shared_32(v.address + v.offset(r, c)));
  else
    return widen(T{ptx::load_shared_16(v.address + v.offset(r, c))});
}
template <class T, int R, int C>
CRIA_FN void write_element(View<T, R, C> v, int r, int c, float x) {
  if constexpr (sizeof(T) == 4)
    ptx::store_shared_32(v.address + v.offset(r, c), __float_as_uint(x));
  else
    ptx::store_shared_16(v.address + v.offset(r, c), narrow<T>(x).bits);
}

// A tile in the layout of a rounded accumulator: 16-bit elements come as the fragments they are.
template <class T, class L, int R, int C>
CRIA_FN void read_block(int tid, Operand<T, L>& to, View<T, R, C> v) {
  static_assert(L::rows == R && L::cols == C, "read: tile and view differ in shape");
  if constexpr (sizeof(T) == 2) {
    const int lane = tid % 32;
#pragma unroll
    for (int s = 0; s < L::strips; ++s)
#pragma unroll
      for (int kk = 0; kk < L::groups / 2; ++kk) {
        const int row = (s * L::warps + tid / 32) * 16 + lane % 16;
        uint32_t fragment[4];
        ptx::ldmatrix(fragment, v.address + v.chunk_offset(row, kk * 2 + lane / 16));
#pragma unroll
        for (int i = 0; i < 4; ++i) to.v[(s * L::groups / 2 + kk) * 4 + i] = fragment[i];
      }
  } else {
#pragma unroll
    for (int i = 0; i < L::regs; ++i)
      to.v[i] = __float_as_uint(read_element(v, L::row(tid, i), L::col(tid, i)));
  }
}

}  // namespace cuda
}  // namespace cria::tile
