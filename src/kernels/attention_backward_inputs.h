// What the kernels of flash attention's backward pass share (attention_backward.h, in one pass
// attention_backward_qkv.h): configurations, how blocks are shared out, the formulas for elements,
// and what all of them read.
#pragma once

#include "kernels/attention.h"
#include "kernels/rope.h"

namespace cria::kernels {

// Overlaps: a step leaves its last products in flight, under the next one's first; takes more
// registers.
template <Lowering Lower, int Queries, int Keys, int HeadDim, int StageCount, int ThreadCount,
          int MinBlocks = 1, bool Overlaps = false, DotPrecision Dot = DotPrecision::kFp32,
          bool Persistent = false>
struct AttentionBackwardConfig : AttentionConfig<Lower, Queries, Keys, HeadDim, StageCount,
                                                 ThreadCount, MinBlocks, Dot, Persistent> {
  using Base = AttentionConfig<Lower, Queries, Keys, HeadDim, StageCount, ThreadCount, MinBlocks,
                               Dot, Persistent>;
  static constexpr bool overlaps = Overlaps, apart = false;
  static constexpr int band = 32;  // heads whose blocks are started together
  static std::string name() { return Base::name() + (Overlaps ? "_overlap" : ""); }
};

// For heads wider than 128 on a GPU. What passes by comes one tile at a time, each in a stage of
// its own, which leaves room in shared memory for larger blocks: 227 KB are 454 rows of 256 16-bit
// elements. Programs of their own make dk and dv, because 16 rows of both would fill all 255
// registers of a warp's threads; that multiplies the scores once more. Nothing is left in flight
// from one step to the next: ptxas would serialise all products, which the other warpgroup's fill.
template <Lowering Lower, int Queries, int Keys, int HeadDim, int ThreadCount,
          DotPrecision Dot = DotPrecision::kFp32>
struct AttentionApartConfig
    : AttentionBackwardConfig<Lower, Queries, Keys, HeadDim, 3, ThreadCount, 1, false, Dot> {
  static constexpr bool apart = true, gpu_only = true;
  static std::string name() {
    return AttentionApartConfig::AttentionBackwardConfig::name() + "_apart";
  }
};

// All blocks of all heads, in order of falling work, shared out among programs. A persistent one
// takes a block with much work and one with little in turn, so that all pairs are alike.
template <class C>
struct AttentionBlocks {
  int heads, blocks;  // of each head

  constexpr int shares() const {
    return heads * (C::traits.persistent ? ceil_div(blocks, 2) : blocks);
  }
  // Whether persistent programs all have about as much to do.
  constexpr bool even(int cores) const {
    const int programs = cores * C::traits.min_blocks;
    return !C::traits.persistent || shares() >= 0.85 * round_up(shares(), programs);
  }
  // f(head, block, slot); `slot` says which of the shared tiles are for what stays of the block.
  template <class P, class F>
  CRIA_FN void run(P& p, F f) const {
    if constexpr (C::traits.persistent) {
      int turn = 0;
      p.for_tiles(shares(), [&](int t) {
        const TileIndex at = p.banded(t, heads, ceil_div(blocks, 2), C::band);
        const int last = blocks - 1 - at.col;
        for (int block = at.col;; block = last) {
          f(at.row, block, turn++ % C::prologues);
          if (block == last) break;
        }
      });
    } else {
      const TileIndex at = p.banded(p.program_id(0), heads, blocks, C::band);
      f(at.row, at.col, 0);
    }
  }
};

// The formulas above, for elements. Scale times log2(e) is to_log2.
struct WeightOfScore {
  float to_log2;
  CRIA_FN float operator()(float score, float lse) const {
    return exp2(score * to_log2 - lse * kLog2E);
  }
};
struct GradientOfScore {
  CRIA_FN float operator()(float dp, float delta, float weight) const {
    return weight * (dp - delta);
  }
};

// What all kernels read.
template <class T>
struct AttentionBackwardInputs {
  using Element = T;
  Tensor<const T> q;        // [B * H, T, K]
  Tensor<const T> k;        // [B * G, S, K], H a multiple of G
  Tensor<const T> v;        // [B * G, S, K]
  Tensor<const T> dout;     // [B * H, T, K]
  Tensor<const float> lse;  // [B * H, T], from the forward pass
  float scale = 1;
  bool causal = true;                            // needs S >= T
  DotPrecision precision = DotPrecision::kFp32;  // of fp32 operands
  Tensor<const float> cos = {}, sin = {};  // [>= S, K/2] of rope, or none; key j is at position j,
                                           // and query i at S - T + i

  template <class V>
  constexpr void operands(V&& visit) {
    visit("q", q), visit("k", k), visit("v", v), visit("dout", dout);
    visit("cos", cos), visit("sin", sin);
  }
  constexpr bool turns() const { return cos.data != nullptr; }
  AttentionForwardArgs<T> forward() const {
    return {
        .q = q, .k = k, .v = v, .o = {}, .scale = scale, .causal = causal, .precision = precision};
  }
  Dims dims() const { return forward().dims(); }
  double scores() const { return forward().scores(); }
  // Of the kernel that makes dx, dq or dk: both tables have half its columns.
  double bytes_read(const Tensor<T>& dx) const {
    return double(q.bytes() + k.bytes() + v.bytes() + dout.bytes() + lse.bytes()) +
           (turns() ? double(sizeof(float)) * dx.rows * dx.cols : 0);
  }
  double turn_flops(const Tensor<T>& dx) const { return turns() ? 3.0 * dx.size() : 0; }
  constexpr int past() const { return k.rows - q.rows; }  // keys before the first query's own
  template <class C>
  bool fits() const {
    return AttentionForward<T, C>::fits(forward()) &&
           (!turns() || (can_fuse_rope(q.cols) && past() >= 0));
  }
  // Turns the block of dq or dk whose first row is at `position` back.
  template <class C, class P, class X>
  CRIA_FN void turn_back(P& p, X& block, int position) const {
    if constexpr (can_fuse_rope(C::head_dim))
      if (turns())
        p.update_pairs(pairs<C::head_dim / 2>, block, TurnPair<-1>{}, {cos, sin, position},
                       {k.rows - position, C::head_dim});
  }
};

}  // namespace cria::kernels
