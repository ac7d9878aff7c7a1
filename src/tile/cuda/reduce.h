// Reductions: registers, then lanes by shuffles, then warps through shared memory.
// Scratch is used in two halves by turns, so one barrier per reduction is enough: a thread that
// writes half h again has passed the barrier of the reduction in between, after everyone had read
// h.
#pragma once

#include "tile/cuda/ptx/sync.h"
#include "tile/cuda/tile.h"

namespace cria::tile {
inline namespace cuda {

struct Add {
  static constexpr float identity = 0.f;
  CRIA_FN float operator()(float a, float b) const { return a + b; }
};
struct Max {
  static constexpr float identity = -3.402823466e+38f;
  CRIA_FN float operator()(float a, float b) const { return ::fmaxf(a, b); }
};

// Lanes l, l ^ From, ..., below To, hold the combined value.
template <int From, int To, class Op>
CRIA_FN float across_lanes(float x, Op op) {
  static_assert((From & (From - 1)) == 0 && (To & (To - 1)) == 0, "lanes combine in powers of two");
#pragma unroll
  for (int o = From; o < To; o *= 2) x = op(x, __shfl_xor_sync(~0u, x, o));
  return x;
}

struct Group {       // the threads that hold a tile together
  int tid, barrier;  // position among them, and their named barrier
  int turn = 0;      // which half of the scratch the next reduction uses
};

// Combines x over `Warps` neighbouring warps. Every thread gets the result of its own set of warps.
template <int Threads, int Groups, int Warps, int Values, class Op>
CRIA_FN void across_warps(Group& g, float (&x)[Values], Op op) {
  if constexpr (Warps > 1) {
    static_assert(Warps <= 32, "a row may span at most 32 warps");
    __shared__ float scratch[Groups][2][Values][Threads / 32];
    const int warp = g.tid / 32, lane = g.tid % 32;
    auto& half = scratch[Groups == 1 ? 0 : threadIdx.x / Threads][g.turn];
    if (lane == 0) {
#pragma unroll
      for (int i = 0; i < Values; ++i) half[i][warp] = x[i];
    }
    ptx::bar_sync(g.barrier, Threads);
#pragma unroll
    for (int i = 0; i < Values; ++i) {
      const float mine = half[i][warp / Warps * Warps + lane % Warps];
      x[i] = across_lanes<1, Warps>(mine, op);
    }
    g.turn ^= 1;
  }
}

// One value per row: registers of the row, then the L::Row::across threads that share it.
template <int Groups, class Op, class L>
CRIA_FN auto reduce_rows(Group& g, const Tile<float, L>& t, Op op, bool finish = true) {
  using R = typename L::Row;
  Tile<float, R> out;
#pragma unroll
  for (int i = 0; i < R::regs; ++i) out.v[i] = Op::identity;
#pragma unroll
  for (int i = 0; i < L::regs; ++i) out.v[L::row_reg(i)] = op(out.v[L::row_reg(i)], t.v[i]);
  if (finish) combine_rows<Groups>(g, out, op);
  return out;
}
template <int Groups, class Op, class R>
CRIA_FN void combine_rows(Group& g, Tile<float, R>& rows, Op op) {
#pragma unroll
  for (int i = 0; i < R::regs; ++i)
    rows.v[i] = across_lanes<1, min_of(R::across, 32)>(rows.v[i], op);
  across_warps<R::threads, Groups, R::across / 32>(g, rows.v, op);
}

template <int Groups, class Op, class L>
CRIA_FN float reduce_all(Group& g, const Tile<float, L>& t, Op op) {
  float x[1] = {Op::identity};
#pragma unroll
  for (int i = 0; i < L::regs; ++i) x[0] = op(x[0], t.v[i]);
  x[0] = across_lanes<1, 32>(x[0], op);
  across_warps<L::threads, Groups, L::threads / 32>(g, x, op);
  return x[0];
}

// One value per column: registers of the column, lanes that share it, then the warps' partial
// columns.
template <int Groups, class Op, class L>
CRIA_FN auto reduce_cols(Group& g, const Tile<float, L>& t, Op op) {
  using C = typename L::Col;
  constexpr int across = C::across, slots = L::threads / (across > 32 ? across : 32);
  Tile<float, C> out;
#pragma unroll
  for (int i = 0; i < C::regs; ++i) out.v[i] = Op::identity;
#pragma unroll
  for (int i = 0; i < L::regs; ++i) out.v[L::col_reg(i)] = op(out.v[L::col_reg(i)], t.v[i]);
  if constexpr (across < 32) {
#pragma unroll
    for (int i = 0; i < C::regs; ++i) out.v[i] = across_lanes<across, 32>(out.v[i], op);
  }
  if constexpr (slots > 1) {
    __shared__ float scratch[Groups][2][slots][L::cols];
    auto& half = scratch[Groups == 1 ? 0 : threadIdx.x / L::threads][g.turn];
    const int slot = g.tid / (across > 32 ? across : 32);
    if (across >= 32 || g.tid % 32 < across) {
#pragma unroll
      for (int i = 0; i < C::regs; ++i) half[slot][C::col(g.tid, i)] = out.v[i];
    }
    ptx::bar_sync(g.barrier, L::threads);
#pragma unroll
    for (int i = 0; i < C::regs; ++i) {
      out.v[i] = half[0][C::col(g.tid, i)];
#pragma unroll
      for (int s = 1; s < slots; ++s) out.v[i] = op(out.v[i], half[s][C::col(g.tid, i)]);
    }
    g.turn ^= 1;
  }
  return out;
}

}  // namespace cuda
}  // namespace cria::tile
