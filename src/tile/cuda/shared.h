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
  static constexpr int chunk = 16 / sizeof(T), panel_cols = 128 / sizeof(T), panel_bytes = Rows * 128;
  static_assert(Rows % 8 == 0, "a shared tile has a multiple of 8 rows (the swizzle's period)");
  static_assert(Cols % panel_cols == 0, "a shared tile's rows are whole 128-byte panels");
  uint32_t address;
  // Byte offset of 16-byte chunk `k` of row r.
  static constexpr int chunk_offset(int r, int k) {
    return k / 8 * panel_bytes + r * 128 + ((k % 8) ^ (r % 8)) * 16;
  }
  static constexpr int offset(int r, int c) {
    return chunk_offset(r, c / chunk) + c % chunk * int(sizeof(T));
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

}  // namespace cuda
}  // namespace cria::tile
