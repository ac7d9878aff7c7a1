// The backward pass of SwiGLU's middle in one kernel, on tensor cores:
//   dact = dy down,  then  dgate = dact by_gate,  dup = dact by_up
// with the derivatives that gate_up has kept. dact is rounded to T, as if it had been in memory,
// and never goes there. The derivatives come through the ring of stages behind the product's
// operands, a panel of columns of both per stage.
#pragma once

#include "kernels/gemm.h"
#include "kernels/unrolled.h"

namespace cria::kernels {

template <class T>
struct GateUpBackwardArgs {
  using Element = T;
  static constexpr const char* kernel = "gate_up_backward";
  Tensor<const T> dy;                            // [M, D], gradient of y downᵀ
  Tensor<const T> down;                          // [D, F]
  Tensor<const T> by_gate;                       // [M, F]
  Tensor<const T> by_up;                         // [M, F]
  Tensor<T> dgate;                               // [M, F], may be by_gate
  Tensor<T> dup;                                 // [M, F], may be by_up
  DotPrecision precision = DotPrecision::kFp32;  // of fp32 operands

  template <class V>
  constexpr void operands(V&& visit) {
    visit("dy", dy), visit("down", down), visit("by_gate", by_gate), visit("by_up", by_up);
    visit("dgate", dgate), visit("dup", dup);
  }
  Dims dims() const {
    return {{"m", dy.rows},
            {"ffn", dgate.cols},
            {"dim", dy.cols},
            {"tf32", precision == DotPrecision::kTf32}};
  }
  Cost cost() const {
    if (dgate.size() == 0) return {};
    return {.flops = (2.0 * dy.cols + 2) * dgate.size(),
            .bytes_read = double(dy.bytes() + down.bytes() + by_gate.bytes() + by_up.bytes()),
            .bytes_written = double(dgate.bytes() + dup.bytes())};
  }
};

template <class T, class C>
struct GateUpBackward {
  using Element = T;
  using Config = C;
  using Args = GateUpBackwardArgs<T>;
  struct Shared : GemmStages<T, C, false, false> {  // a: dy or by_gate, b: down or by_up
    GemmStaging<T, C, 2> out;
  };
  static constexpr int panels = C::n / C::k;
  static_assert(C::m <= C::n, "a panel of by_up takes the place of a stage of down");
  static constexpr Traits traits = C::traits;
  static bool fits(const Args& a) { return multiplies_in<T, C>(a.precision); }
  static bool suits(const Args& a, int cores) {
    return enough_tiles<C>(tile_count<C>(a.dgate), cores);
  }
  static Grid grid(const Args& a) { return {tile_count<C>(a.dgate)}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    const int rows = ceil_div(a.dgate.rows, C::m), cols = ceil_div(a.dgate.cols, C::n);
    const int depth = ceil_div(a.dy.cols, C::k);
    p.for_tiles(rows * cols, [&](int t) {
      const TileIndex at = p.banded(t, rows, cols, C::band);
      const int r0 = at.row * C::m, c0 = at.col * C::n;
      p.pipeline(
          stages<C::stages>, depth + panels,
          [&](int j, int stage) {
            if (j < depth) {
              p.fetch(s.a[stage], a.dy, 0, r0, j * C::k);
              p.fetch(s.b[stage], a.down, 0, j * C::k, c0);
            } else {
              const int c = c0 + (j - depth) * C::k;
              p.fetch(s.a[stage], a.by_gate, 0, r0, c);
              p.fetch(s.b[stage].as(shape<C::m, C::k>), a.by_up, 0, r0, c);
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
              decltype(dact) dgate, dup;  // the derivatives, and then the gradients
              steps(1, [&](int, int stage) {
                p.read(dgate, s.a[stage]);
                p.read(dup, s.b[stage].as(shape<C::m, C::k>));
              });
              update_all([](float& dgate, float& dup, float& dact) { dgate *= dact, dup *= dact; },
                         dgate, dup, dact);
              p.store_tile(a.dgate, 0, r0, c, dgate, s.out);
              p.store_tile(a.dup, 0, r0, c, dup, s.out);
            });
          });
    });
  }
};

template <class T>
struct GateUpBackwardSpace {
  template <int M, int N, int S, int Threads>
  using Hopper = GemmConfig<Lowering::kHopper, M, N, 64, S, Threads>;
  using type = KernelSpace<GateUpBackward, T, Hopper<128, 128, 5, 256>, Hopper<64, 128, 6, 128>,
                           GemmConfig<Lowering::kAmpere, 64, 64, 64, 3, 128>>;
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
