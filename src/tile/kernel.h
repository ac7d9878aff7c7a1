// What a kernel declares about itself, read by launcher, tuner, tracer, roofline and report alike.
//
//   template <class T, class C> struct RmsNormForward {
//     using Element = T;                    widest memory type: sets the vector width
//     using Config = C;                     what is tuned over
//     using Args = RmsNormForwardArgs<T>;   operands with shapes, independent of C
//     static constexpr Traits traits{.threads = C::threads};
//     static Grid grid(const Args&);        programs to launch
//     template <class P> CRIA_FN static void run(P& p, const Args& a);
//   };
// Optional: `struct Shared {...}` of SharedTile members, then run(p, a, shared); `fits(args)`;
// `ahead(p, args)`, which asks for operands while the launch before is still running (sm_90, in the
// lowering kAmpere).
#pragma once

#include <cstdint>

#include "tile/shape.h"

namespace cria::tile {

struct Grid {
  int64_t x = 0;
  int y = 1, z = 1;
  constexpr int64_t programs() const { return x * y * z; }
  constexpr bool valid() const { return x >= 0 && y >= 0 && z >= 0; }
};

// Which instructions carry fetch, dot and pipeline on a GPU.
//   kAmpere: cp.async, ldmatrix and mma.sync, on every GPU from sm_80.
//   kHopper: TMA, wgmma and mbarriers, sm_90a only.
enum class Lowering { kAmpere, kHopper };

// How fp32 operands of dot are multiplied on tensor cores: tf32 keeps 10 mantissa bits; kFp32
// splits each operand into two tf32 parts and adds three products, which recovers fp32.
enum class DotPrecision { kTf32, kFp32 };

struct Traits {
  int threads = 256;   // that compute: a producer warpgroup comes on top
  int min_blocks = 1;  // resident programs per multiprocessor the registers must allow
  Lowering lowering = Lowering::kAmpere;
  int groups = 1;     // kHopper: groups of `threads`, each taking every groups-th tile of for_tiles
  int prologues = 1;  // kHopper, 1 or 2: tiles of for_tiles whose fetches outside a pipeline have a
                      // shared tile of their own, so that the next one's come early
  bool assisted = false;     // kHopper: what pipelines hand over is for a warpgroup of its own
  bool persistent = false;   // grid(args).x tiles are spread over at most one wave of programs
  bool cooperative = false;  // uses grid_sync: all programs must be resident at once
  DotPrecision dot = DotPrecision::kFp32;
};

// A kernel as its assistant sees it: what is handed over is for one warpgroup.
// NOTE: reductions have a scratch for each number of threads, so the others must be more than
// these.
inline constexpr int kAssistantThreads = 128;
inline constexpr int kHands = 2;  // what can be handed over before the first of it comes back
template <class K>
struct Assistant : K {
  static_assert(K::traits.lowering == Lowering::kHopper && K::traits.groups == 1 &&
                    K::traits.threads > kAssistantThreads,
                "assisted: for one group of two or more warpgroups of the Hopper lowering");
  static constexpr bool assists = true;
  static constexpr Traits traits = [] {
    Traits t = K::traits;
    t.threads = kAssistantThreads;
    t.groups = 1;
    return t;
  }();
};

// Args::operands(visit) calls visit(name, tensor) for every operand. visit(name, tensor,
// element_wise) marks one that is only accessed element by element: it needs no alignment and no
// tensor map.
struct ElementWise {};
inline constexpr ElementWise element_wise{};

// Tile order for products: `band` rows of tiles at a time, so that neighbours share operands in L2.
struct TileIndex {
  int row, col;
};
constexpr TileIndex banded(int t, int rows, int cols, int band) {
  const int per = band * cols, b = t / per, r = t - b * per;
  const int height = min_of(band, rows - b * band);
  return {b * band + r % height, r / height};
}

}  // namespace cria::tile
