// Projection to queries, keys and values with rotary embedding, on tensor cores:  y = x wᵀ, and
// then the heads of y's first columns turned by the angle of their row's position (kernels/rope.h).
// The product is rounded to T before it is turned, as if it had been in memory.
#pragma once

#include "kernels/gemm.h"
#include "kernels/rope.h"

namespace cria::kernels {

template <class T>
struct QkvArgs {
  using Element = T;
  static constexpr const char* kernel = "qkv";
  Tensor<const T> x;        // [R, D]
  Tensor<const T> w;        // [N, D]
  Tensor<T> y;              // [R, N]
  Tensor<const float> cos;  // [>= T, K/2]
  Tensor<const float> sin;  // [>= T, K/2]
  int head_dim;             // K, see can_fuse_rope
  int turned;               // leading columns that are heads to turn, a multiple of K
  int seq;                  // T: row r is at position r % T
  DotPrecision precision = DotPrecision::kFp32;  // of fp32 operands

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("w", w), visit("y", y), visit("cos", cos), visit("sin", sin);
  }
  Dims dims() const {
    return {{"m", y.rows},
            {"n", y.cols},
            {"k", x.cols},
            {"head_dim", head_dim},
            {"tf32", precision == DotPrecision::kTf32}};
  }
  Cost cost() const {
    if (y.size() == 0) return {};
    const double tables = turned > 0 ? double(sizeof(float)) * min_of(y.rows, seq) * head_dim : 0;
    return {.flops = 2.0 * y.size() * x.cols + 3.0 * y.rows * turned,
            .bytes_read = double(x.bytes() + w.bytes()) + tables,
            .bytes_written = double(y.bytes())};
  }
};

template <class T, class C>
struct Qkv {
  using Element = T;
  using Config = C;
  using Args = QkvArgs<T>;
  using Shared = GemmShared<T, C, false, true>;
  static constexpr Traits traits = C::traits;
  static bool fits(const Args& a) {
    return can_fuse_rope(a.head_dim) && C::n % a.head_dim == 0 && a.turned % a.head_dim == 0 &&
           multiplies_in<T, C>(a.precision);
  }
  static bool suits(const Args& a, int cores) { return enough_tiles<C>(tile_count<C>(a.y), cores); }
  static Grid grid(const Args& a) { return {tile_count<C>(a.y)}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    const int rows = ceil_div(a.y.rows, C::m), cols = ceil_div(a.y.cols, C::n);
    p.for_tiles(rows * cols, [&](int t) {
      const TileIndex at = p.banded(t, rows, cols, C::band);
      const int r0 = at.row * C::m, c0 = at.col * C::n;
      gemm_tile<C, false, true>(p, a.x, a.w, a.y, s, r0, c0, [&](auto& p, auto& acc) {
        const Mask heads{a.y.rows - r0, a.turned - c0};
        const PairTables angles{a.cos, a.sin, r0, a.seq};
        if (a.head_dim == 64)
          p.update_pairs(pairs<32>, acc, TurnRounded{}, angles, heads);
        else if constexpr (C::n % 128 == 0)
          p.update_pairs(pairs<64>, acc, TurnRounded{}, angles, heads);
      });
    });
  }

 private:
  struct TurnRounded {
    CRIA_FN void operator()(float& low, float& high, float cos, float sin) const {
      low = rounded_to<T>(low), high = rounded_to<T>(high);
      TurnPair<1>{}(low, high, cos, sin);
    }
  };
};

// Tiles hold whole heads.
template <class T>
struct QkvSpace {
  template <int M, int N, int Depth, int S, int Threads, int Groups = 1>
  using Hopper = GemmConfig<Lowering::kHopper, M, N, Depth, S, Threads, Groups>;
  template <int M, int N, int Threads>
  using Ampere = GemmConfig<Lowering::kAmpere, M, N, 64, 3, Threads>;
  using type = KernelSpace<Qkv, T, Hopper<128, 128, 64, 5, 128, 2>, Hopper<64, 128, 64, 8, 128>,
                           Hopper<64, 64, 128, 6, 128>, Ampere<64, 64, 128>, Ampere<128, 128, 256>>;
};
template <>
struct QkvSpace<float> : GemmSpaceOf<Qkv, float> {};

template <class T>
using QkvKernels = KernelList<typename QkvSpace<T>::type>;

}  // namespace cria::kernels
