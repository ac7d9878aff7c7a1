// Which shared-memory words a GPU program touches: the addresses of staged transposes, of
// reductions across warps, of swizzled tiles and of the fragments dot reads from them, as in
// tile/cuda. Every function calls request(warp, bytes, address(lane)) for each request; address < 0
// is inactive.
#pragma once

#include <cstdint>

#include "tile/cpu/shared.h"
#include "tile/layout.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

// Byte offsets in a tile of 128-byte rows whose eight 16-byte chunks are XOR-swizzled by the row.
template <class T, int Rows>
struct Swizzled {
  static constexpr int chunk = 16 / sizeof(T);
  static constexpr int64_t chunk_offset(int r, int k) {
    return k / 8 * Rows * 128 + swizzled(r, k % 8);
  }
  static constexpr int64_t offset(int r, int c) {
    return chunk_offset(r, c / chunk) + c % chunk * static_cast<int>(sizeof(T));
  }
};

// One request per `Width` registers and warp: each lane at offset(row, col).
template <class L, int Width = 1, class Request, class Offset>
void each_register(int bytes, Request request, Offset offset) {
  for (int i = 0; i < L::regs; i += Width)
    for (int warp = 0; warp < L::threads / 32; ++warp)
      request(warp, bytes, [&](int lane) -> int64_t {
        return offset(L::row(warp * 32 + lane, i), L::col(warp * 32 + lane, i));
      });
}

// An accumulator that threads set aside, four registers at a time.
template <class L, class Request>
void model_saved(Request request) {
  for (int i = 0; i < L::regs; i += 4)
    for (int warp = 0; warp < L::threads / 32; ++warp)
      request(warp, 16,
              [&](int lane) -> int64_t { return (i * L::threads + (warp * 32 + lane) * 4) * 4; });
}

// `values` results of each warp meet in an array [values][warps], read by sets of `set` warps.
template <class Store, class Load>
void model_across_warps(int threads, int set, int values, Store store, Load load) {
  if (set <= 1) return;
  const int warps = threads / 32;
  for (int warp = 0; warp < warps; ++warp)
    for (int i = 0; i < values; ++i)
      store(warp, 4, [&](int lane) -> int64_t { return lane == 0 ? (i * warps + warp) * 4 : -1; });
  for (int warp = 0; warp < warps; ++warp)
    for (int i = 0; i < values; ++i)
      load(warp, 4,
           [&](int lane) -> int64_t { return (i * warps + warp / set * set + lane % set) * 4; });
}

// Partial columns of `slots` groups of threads meet in an array [slots][columns].
template <class L, class Store, class Load>
void model_columns(Store store, Load load) {
  using C = typename L::Col;
  constexpr int width = C::across > 32 ? C::across : 32, slots = L::threads / width;
  if constexpr (slots > 1) {
    for (int i = 0; i < C::regs; ++i)
      for (int warp = 0; warp < L::threads / 32; ++warp)
        store(warp, 4, [&](int lane) -> int64_t {
          const int t = warp * 32 + lane;
          return C::across >= 32 || lane < C::across ? (t / width * L::cols + C::col(t, i)) * 4
                                                     : -1;
        });
    for (int i = 0; i < C::regs; ++i)
      for (int slot = 0; slot < slots; ++slot)
        for (int warp = 0; warp < L::threads / 32; ++warp)
          load(warp, 4, [&](int lane) -> int64_t {
            return (slot * L::cols + C::col(warp * 32 + lane, i)) * 4;
          });
  }
}

// ---- fragments of dot with mma.sync
template <class T>
inline constexpr int kDotStep = sizeof(T) == 2 ? 16 : 8;

// A: 16 x kDotStep at (row0, kk * kDotStep).
template <class T, int R, int C, class Request>
void model_a_fragment(View<T, R, C>, int warp, int row0, int kk, Request request) {
  using S = Swizzled<T, R>;
  request(warp, 16, [&](int l) { return S::chunk_offset(row0 + l % 16, kk * 2 + l / 16); });
}
template <class T, int R, int C, class Request>
void model_a_fragment(Transposed<View<T, R, C>>, int warp, int row0, int kk, Request request) {
  using S = Swizzled<T, R>;
  if constexpr (sizeof(T) == 2) {
    request(warp, 16, [&](int l) {
      return S::chunk_offset(kk * 16 + l / 16 * 8 + l % 8, row0 / 8 + l / 8 % 2);
    });
  } else {
    for (int i = 0; i < 4; ++i)
      request(warp, 4, [&](int l) {
        return S::offset(kk * 8 + l % 4 + i / 2 * 4, row0 + l / 4 + i % 2 * 8);
      });
  }
}

// B: kDotStep x 16 at (kk * kDotStep, col0); paired when an fp32 A comes from an accumulator.
template <class T, int R, int C, class Request>
void model_b_fragment(Transposed<View<T, R, C>>, bool paired, int warp, int col0, int kk,
                      Request request) {
  using S = Swizzled<T, R>;
  if (!paired) {
    request(warp, 16,
            [&](int l) { return S::chunk_offset(col0 + l % 8 + l / 16 * 8, kk * 2 + l / 8 % 2); });
  } else {
    for (int i = 0; i < 4; ++i)
      request(warp, 4, [&](int l) {
        return S::offset(col0 + l / 4 + i / 2 * 8, kk * 8 + l % 4 * 2 + i % 2);
      });
  }
}
template <class T, int R, int C, class Request>
void model_b_fragment(View<T, R, C>, bool paired, int warp, int col0, int kk, Request request) {
  using S = Swizzled<T, R>;
  if constexpr (sizeof(T) == 2) {
    request(warp, 16, [&](int l) { return S::chunk_offset(kk * 16 + l % 16, col0 / 8 + l / 16); });
  } else {
    for (int i = 0; i < 4; ++i)
      request(warp, 4, [&](int l) {
        const int k = kk * 8 + (paired ? l % 4 * 2 + i % 2 : l % 4 + i % 2 * 4);
        return S::offset(k, col0 + l / 4 + i / 2 * 8);
      });
  }
}

template <class T, int R, int C, class Request>
void model_b_fragment(Transposed<Stacked<View<T, R, C>>>, bool paired, int warp, int col0, int kk,
                      Request request) {
  model_b_fragment(Transposed<View<T, 2 * R, C>>{}, paired, warp, col0, kk, request);
}

template <class X>
struct MemoryOf;
template <class T, int R, int C>
struct MemoryOf<View<T, R, C>> {
  using type = T;
};
template <class V>
struct MemoryOf<Stacked<V>> : MemoryOf<V> {};
template <class V>
struct MemoryOf<Transposed<V>> : MemoryOf<V> {};

// Everything one dot reads from shared memory; A may be in registers.
template <class L, class A, class B, class Request>
void model_dot(const A& a, const B& b, Request request) {
  using T = typename MemoryOf<B>::type;
  constexpr bool from_registers = requires { a.v; };
  for (int warp = 0; warp < L::warps; ++warp)
    for (int kk = 0; kk < B::rows / kDotStep<T>; ++kk) {
      if constexpr (!from_registers)
        for (int s = 0; s < L::strips; ++s)
          model_a_fragment(a, warp, (s * L::warps + warp) * 16, kk, request);
      for (int n = 0; n < L::groups; n += 2)
        model_b_fragment(b, from_registers && sizeof(T) == 4, warp, n * 8, kk, request);
    }
}

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
