// The backward pass of SwiGLU's middle in one kernel, on tensor cores:
//   dact = dy down,  then  dgate = dact up silu'(gate),  dup = dact silu(gate),  and y = silu(gate)
//   up
// dact is rounded to T, as if it had been in memory, and never goes there. gate and up come through
// the ring of stages behind the product's operands, a panel of columns of both per stage.
#pragma once

#include "kernels/gemm.h"
#include "kernels/silu.h"
#include "kernels/unrolled.h"

namespace cria::kernels {

template <class T>
struct GateUpBackwardArgs {
  using Element = T;
  static constexpr const char* kernel = "gate_up_backward";
  Tensor<const T> dy;    // [M, D], gradient of y downᵀ
  Tensor<const T> down;  // [D, F]
  Tensor<const T> gate;  // [M, F]
  Tensor<const T> up;    // [M, F]
  Tensor<T> dgate;       // [M, F], may be gate
  Tensor<T> dup;         // [M, F], may be up
  Tensor<T> y = {};      // [M, F], for the gradient of down; not written when data is null
  DotPrecision precision = DotPrecision::kFp32;  // of fp32 operands

  template <class V>
  constexpr void operands(V&& visit) {
    visit("dy", dy), visit("down", down), visit("gate", gate), visit("up", up);
    visit("dgate", dgate), visit("dup", dup), visit("y", y);
  }
  Dims dims() const {
    return {{"m", dy.rows},
            {"ffn", gate.cols},
            {"dim", dy.cols},
            {"tf32", precision == DotPrecision::kTf32}};
  }
  Cost cost() const {
    if (gate.size() == 0) return {};
    return {.flops = (2.0 * dy.cols + 11) * gate.size() + double(y.size()),
            .bytes_read = double(dy.bytes() + down.bytes() + gate.bytes() + up.bytes()),
            .bytes_written = double(dgate.bytes() + dup.bytes() + y.bytes())};
  }
};

template <class T, class C>
struct GateUpBackward {
  using Element = T;
  using Config = C;
  using Args = GateUpBackwardArgs<T>;
  struct Shared : GemmStages<T, C, false, false> {  // a: dy or gate, b: down or up
    GemmStaging<T, C, 2> out;
  };
  static constexpr int panels = C::n / C::k;
  static_assert(C::m <= C::n, "a panel of up takes the place of a stage of down");
  static constexpr Traits traits = C::traits;
  static bool fits(const Args& a) { return sizeof(T) == 2 || C::traits.dot == a.precision; }
  static bool suits(const Args& a, int cores) {
    return enough_tiles<C>(tile_count<C>(a.gate), cores);
  }
  static Grid grid(const Args& a) { return {tile_count<C>(a.gate)}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    const int rows = ceil_div(a.gate.rows, C::m), cols = ceil_div(a.gate.cols, C::n);
    const int depth = ceil_div(a.dy.cols, C::k);
    p.for_tiles(rows * cols, [&](int t) {
      const TileIndex at = banded(t, rows, cols, C::band);
      const int r0 = at.row * C::m, c0 = at.col * C::n;
      p.pipeline(
          stages<C::stages>, depth + panels,
          [&](int j, int stage) {
            if (j < depth) {
              p.fetch(s.a[stage], a.dy, 0, r0, j * C::k);
              p.fetch(s.b[stage], a.down, 0, j * C::k, c0);
            } else {
              const int c = c0 + (j - depth) * C::k;
              p.fetch(s.a[stage], a.gate, 0, r0, c);
              p.fetch(s.b[stage].as(shape<C::m, C::k>), a.up, 0, r0, c);
            }
          },
          [&](auto& p, auto& steps) {
            auto sum = p.accumulator(shape<C::m, C::n>);
            steps(depth, [&](int, int stage) { p.dot(sum, s.a[stage], s.b[stage]); });
            p.dot_wait(sum);
            auto all = p.cast(type<T>, sum);
            unrolled<panels>([&](int panel) {
              const int c = c0 + panel * C::k;
              auto dact = p.columns(all, shape<C::k>, panel * C::k);
              decltype(dact) gate, up;
              steps(1, [&](int, int stage) {
                p.read(gate, s.a[stage]);
                p.read(up, s.b[stage].as(shape<C::m, C::k>));
              });
              update_all(
                  [](float& gate, float& up, float& dact) {
                    const float g = gate, u = up, d = dact, s = sigmoid(g);
                    gate = SiluUpDgate{}(g, u, s, d);
                    up = SiluUpDup{}(g, s, d);
                    dact = SiluUp{}(g, u, s);
                  },
                  gate, up, dact);
              p.store_tile(a.dgate, 0, r0, c, gate, s.out);
              p.store_tile(a.dup, 0, r0, c, up, s.out);
              if (a.y.data) p.store_tile(a.y, 0, r0, c, dact, s.out);
            });
          });
    });
  }
};

template <class T>
struct GateUpBackwardSpace {
  template <int M, int N, int S, int Threads, int Groups = 1>
  using Hopper = GemmConfig<Lowering::kHopper, M, N, 64, S, Threads, Groups>;
  using type =
      KernelSpace<GateUpBackward, T, Hopper<128, 256, 4, 256>, Hopper<128, 128, 5, 256>,
                  Hopper<64, 128, 6, 128>, GemmConfig<Lowering::kAmpere, 64, 64, 64, 3, 128>>;
};
template <>
struct GateUpBackwardSpace<float> {
  using type =
      KernelSpace<GateUpBackward, float,
                  GemmConfig<Lowering::kAmpere, 64, 64, 32, 3, 128, 1, 16, 1, DotPrecision::kFp32>,
                  GemmConfig<Lowering::kAmpere, 64, 64, 32, 3, 128, 1, 16, 1, DotPrecision::kTf32>>;
};

template <class T>
using GateUpBackwardKernels = KernelList<typename GateUpBackwardSpace<T>::type>;

}  // namespace cria::kernels
