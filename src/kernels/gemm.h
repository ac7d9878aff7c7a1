// Matrix product on tensor cores, fp32 accumulation, any sizes:
//   c = op(a) op(b) [+ residual]
// with op(x) = x or xᵀ: the names end in n or t for a, then for b, as the operands are stored.
#pragma once

#include <type_traits>

#include "kernels/config.h"
#include "kernels/list.h"

namespace cria::kernels {

// BlockM x BlockN of c per tile, BlockK deep steps. Groups > 1 (Hopper): groups of warpgroups work
// on tiles of their own in turn, so one's epilogue runs under another's main loop. Band: tile
// order.
template <Lowering Lower, int BlockM, int BlockN, int BlockK, int StageCount, int ThreadCount,
          int GroupCount = 1, int Band = 16, int MinBlocks = 1,
          DotPrecision Dot = DotPrecision::kFp32>
struct GemmConfig {
  static constexpr int m = BlockM, n = BlockN, k = BlockK, stages = StageCount, band = Band;
  static constexpr bool hopper = Lower == Lowering::kHopper;
  static constexpr int groups = GroupCount;
  static constexpr Traits traits{.threads = ThreadCount,
                                 .min_blocks = MinBlocks,
                                 .lowering = Lower,
                                 .groups = GroupCount,
                                 .persistent = true,
                                 .dot = Dot};
  static std::string name() {
    return std::string(hopper ? "hopper" : "ampere") + "_" + std::to_string(m) + "x" +
           std::to_string(n) + "x" + std::to_string(k) + "_stages" + std::to_string(stages) +
           (groups > 1 ? "_pingpong" : "") + (ThreadCount / 32 * 16 < m ? "_tall" : "") +
           (band != 16 ? "_band" + std::to_string(band) : "") +
           (MinBlocks > 1 ? "_resident" + std::to_string(MinBlocks) : "") +
           (Dot == DotPrecision::kTf32 ? "_tf32" : "");
  }
};

// Buffers of 64 columns through which a group's results leave for memory (Hopper).
struct NoStaging {};
template <class T, class C, int Buffers>
using GemmStaging =
    std::conditional_t<C::hopper, SharedTile<T, C::m, 64, Buffers * C::groups>, NoStaging>;

// Pipeline stages of both operands, as stored; a transposed operand keeps its storage order.
template <class T, class C, bool TransA, bool TransB>
struct GemmStages {
  SharedTile<T, TransA ? C::k : C::m, TransA ? C::m : C::k, C::stages> a;
  SharedTile<T, TransB ? C::n : C::k, TransB ? C::k : C::n, C::stages> b;
};
template <class T, class C, bool TransA, bool TransB>
struct GemmShared : GemmStages<T, C, TransA, TransB> {
  GemmStaging<T, C, C::n >= 128 && C::m <= 128 ? 2 : 1> out;
};

template <class T, bool TransA, bool TransB>
struct GemmArgs {
  using Element = T;
  static constexpr const char* kernel =
      TransA ? (TransB ? "gemm_tt" : "gemm_tn") : (TransB ? "gemm_nt" : "gemm_nn");
  Tensor<const T> a;                             // [M, K], or [K, M] when transposed
  Tensor<const T> b;                             // [K, N], or [N, K] when transposed
  Tensor<T> c;                                   // [M, N]
  Tensor<const T> residual = {};                 // [M, N], may be c itself; none when data is null
  DotPrecision precision = DotPrecision::kFp32;  // of fp32 operands

  template <class V>
  constexpr void operands(V&& visit) {
    visit("a", a), visit("b", b), visit("c", c), visit("residual", residual);
  }
  constexpr int inner() const { return TransA ? a.rows : a.cols; }
  Dims dims() const {
    return {
        {"m", c.rows}, {"n", c.cols}, {"k", inner()}, {"tf32", precision == DotPrecision::kTf32}};
  }
  Cost cost() const {
    if (c.size() == 0) return {};
    const bool adds = residual.data != nullptr;
    return {.flops = 2.0 * c.size() * inner() + (adds ? c.size() : 0),
            .bytes_read = double(a.bytes() + b.bytes() + (adds ? c.bytes() : 0)),
            .bytes_written = double(c.bytes())};
  }
};

// Whether a device's cores all get a tile, or nearly; the smallest tile is for what no tile suits.
template <class C>
constexpr bool enough_tiles(int64_t tiles, int cores) {
  return C::m * C::n <= 64 * 64 || tiles * 4 >= int64_t{cores} * 3;
}

// A tile of c in the memory of a stage, where one has room for it.
template <class C, class Shared>
CRIA_FN auto tile_in_stage(const Shared& s, int stage) {
  if constexpr (C::n <= C::k)
    return s.a[stage].as(shape<C::m, C::n>);
  else
    return s.b[stage].as(shape<C::m, C::n>);
}
template <class C>
constexpr bool has_tile_in_stage() {
  return C::hopper && C::groups == 1 && (C::n <= C::k || C::m <= C::k);
}

// One tile of c = op(a) op(b) [+ residual], at row r0 and column c0; `finish` may change the sums
// before they are stored. Where it can, the residual comes through a stage behind the operands.
template <class C, bool TransA, bool TransB, class P, class T, class Shared, class Finish>
CRIA_FN void gemm_tile(P& p, const Tensor<const T>& a, const Tensor<const T>& b, const Tensor<T>& c,
                       Shared& s, int r0, int c0, Finish finish,
                       const Tensor<const T>& residual = {}) {
  constexpr auto op = []<bool Transpose>(auto view, std::bool_constant<Transpose>) {
    if constexpr (Transpose)
      return trans(view);
    else
      return view;
  };
  constexpr bool staged = has_tile_in_stage<C>();
  const int depth = ceil_div(TransA ? a.rows : a.cols, C::k);
  p.pipeline(
      stages<C::stages>, depth + (staged && residual.data),
      [&](int j, int stage) {
        if constexpr (staged)
          if (residual.data && j == depth) {
            p.fetch(tile_in_stage<C>(s, stage), residual, 0, r0, c0);
            return;
          }
        const int k0 = j * C::k;
        p.fetch(s.a[stage], a, 0, TransA ? k0 : r0, TransA ? r0 : k0);
        p.fetch(s.b[stage], b, 0, TransB ? c0 : k0, TransB ? k0 : c0);
      },
      [&](auto& p, auto& steps) {
        auto acc = p.accumulator(shape<C::m, C::n>);
        const auto multiply = [&](int, int stage) {
          p.dot(acc, op(s.a[stage], std::bool_constant<TransA>{}),
                op(s.b[stage], std::bool_constant<TransB>{}));
        };
        if constexpr (staged)
          steps(depth, multiply);
        else
          steps(multiply);
        p.dot_wait(acc);
        if constexpr (staged) {
          if (residual.data) {
            decltype(p.cast(type<T>, acc)) more;
            steps.one([&](int, int stage) { p.read(more, tile_in_stage<C>(s, stage)); });
            acc += more;
          }
        } else {
          if (residual.data) p.add_block(acc, residual, r0, c0);
        }
        finish(p, acc);
        p.store_tile(c, 0, r0, c0, acc, s.out);
      });
}

template <class C, class T>
constexpr int64_t tile_count(const Tensor<T>& c) {
  return int64_t{ceil_div(c.rows, C::m)} * ceil_div(c.cols, C::n);
}

template <class T, class C, bool TransA, bool TransB>
struct Gemm {
  using Element = T;
  using Config = C;
  using Args = GemmArgs<T, TransA, TransB>;
  using Shared = GemmShared<T, C, TransA, TransB>;
  static constexpr Traits traits = C::traits;
  static bool fits(const Args& a) { return multiplies_in<T, C>(a.precision); }
  static bool suits(const Args& a, int cores) { return enough_tiles<C>(tile_count<C>(a.c), cores); }
  static Grid grid(const Args& a) { return {tile_count<C>(a.c)}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    const int rows = ceil_div(a.c.rows, C::m), cols = ceil_div(a.c.cols, C::n);
    p.for_tiles(rows * cols, [&](int t) {
      const TileIndex at = p.banded(t, rows, cols, C::band);
      const int r0 = at.row * C::m, c0 = at.col * C::n;
      gemm_tile<C, TransA, TransB>(
          p, a.a, a.b, a.c, s, r0, c0, [](auto&, auto&) {}, a.residual);
    });
  }
};

template <class T, class C>
using GemmNN = Gemm<T, C, false, false>;
template <class T, class C>
using GemmNT = Gemm<T, C, false, true>;
template <class T, class C>
using GemmTN = Gemm<T, C, true, false>;
template <class T, class C>
using GemmTT = Gemm<T, C, true, true>;

// The tuning space, by size of c: 128-row tiles, ping-pong; small tiles and deep steps; then others
// for large products.
template <template <class, class> class K, class T>
struct GemmSpaceOf {
  template <int M, int N, int Depth, int S, int Threads, int Groups = 1, int Band = 16,
            int Resident = 1>
  using Hopper = GemmConfig<Lowering::kHopper, M, N, Depth, S, Threads, Groups, Band, Resident>;
  template <int M, int N, int Depth, int S, int Threads>
  using Ampere = GemmConfig<Lowering::kAmpere, M, N, Depth, S, Threads>;
  using type = KernelSpace<K, T, Hopper<128, 128, 64, 5, 128, 2>, Hopper<64, 128, 64, 8, 128>,
                           Hopper<64, 64, 128, 6, 128>, Hopper<128, 192, 64, 4, 128, 2>,
                           Hopper<128, 256, 64, 4, 256>, Hopper<128, 128, 64, 6, 256>,
                           Ampere<64, 64, 64, 3, 128>, Ampere<128, 128, 64, 3, 256>>;
};
template <template <class, class> class K>
struct GemmSpaceOf<K, float> {
  template <int M, int N, int Threads, DotPrecision Dot>
  using Ampere = GemmConfig<Lowering::kAmpere, M, N, 32, 3, Threads, 1, 16, 1, Dot>;
  using type = KernelSpace<K, float, Ampere<64, 64, 128, DotPrecision::kFp32>,
                           Ampere<128, 128, 256, DotPrecision::kFp32>,
                           Ampere<64, 64, 128, DotPrecision::kTf32>,
                           Ampere<128, 128, 256, DotPrecision::kTf32>>;
};

template <class T>
using GemmKernels =
    KernelList<typename GemmSpaceOf<GemmNN, T>::type, typename GemmSpaceOf<GemmNT, T>::type,
               typename GemmSpaceOf<GemmTN, T>::type, typename GemmSpaceOf<GemmTT, T>::type>;

}  // namespace cria::kernels
