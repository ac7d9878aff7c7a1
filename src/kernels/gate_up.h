// The fully fused first half of SwiGLU, on tensor cores:  y = silu(x gateᵀ) * (x upᵀ).
// The two products are one, with columns of gate and of up side by side; its results are rounded to
// T, as if they had been in memory, meet in registers and never go there. What a backward pass
// wants are the derivatives of y by them.
#pragma once

#include "kernels/gemm.h"
#include "kernels/silu.h"

namespace cria::kernels {

template <class T>
struct GateUpArgs {
  using Element = T;
  static constexpr const char* kernel = "gate_up";
  Tensor<const T> x;       // [M, D]
  Tensor<const T> gate;    // [F, D]
  Tensor<const T> up;      // [F, D]
  Tensor<T> y;             // [M, F]
  Tensor<T> by_gate = {};  // [M, F], dy / d(x gateᵀ); neither is written when data is null
  Tensor<T> by_up = {};    // [M, F], dy / d(x upᵀ)
  DotPrecision precision = DotPrecision::kFp32;  // of fp32 operands

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("gate", gate), visit("up", up), visit("y", y);
    visit("by_gate", by_gate), visit("by_up", by_up);
  }
  Dims dims() const {
    return {{"m", x.rows},
            {"ffn", y.cols},
            {"dim", x.cols},
            {"keep", by_gate.data != nullptr},
            {"tf32", precision == DotPrecision::kTf32}};
  }
  Cost cost() const {
    if (y.size() == 0) return {};
    return {.flops = 4.0 * y.size() * x.cols + 5.0 * y.size() + 5.0 * by_gate.size(),
            .bytes_read = double(x.bytes() + gate.bytes() + up.bytes()),
            .bytes_written = double(y.bytes() + by_gate.bytes() + by_up.bytes())};
  }
};

template <class T, class C>
struct GateUp {
  using Element = T;
  using Config = C;
  using Args = GateUpArgs<T>;
  static constexpr bool tall = C::m > 128;  // has no registers to keep anything, and less staging
  struct Shared {
    SharedTile<T, C::m, C::k, C::stages> x;
    SharedTile<T, C::n, C::k, 2 * C::stages> weights;  // of each stage: gate, then up
    GemmStaging<T, C, tall ? 1 : 2> out;
  };
  static constexpr Traits traits = C::traits;
  static bool fits(const Args& a) {
    return multiplies_in<T, C>(a.precision) && (!tall || !a.by_gate.data);
  }
  static Grid grid(const Args& a) { return {tile_count<C>(a.y)}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    const int rows = ceil_div(a.y.rows, C::m), cols = ceil_div(a.y.cols, C::n);
    p.for_tiles(rows * cols, [&](int t) {
      const TileIndex at = p.banded(t, rows, cols, C::band);
      const int r0 = at.row * C::m, c0 = at.col * C::n;
      p.pipeline(
          stages<C::stages>, ceil_div(a.x.cols, C::k),
          [&](int j, int stage) {
            p.fetch(s.x[stage], a.x, 0, r0, j * C::k);
            p.fetch(s.weights[2 * stage], a.gate, 0, c0, j * C::k);
            p.fetch(s.weights[2 * stage + 1], a.up, 0, c0, j * C::k);
          },
          [&](auto& p, auto& steps) {
            auto sum = p.accumulator(shape<C::m, 2 * C::n>);
            steps([&](int, int stage) {
              p.dot(sum, s.x[stage], trans(s.weights.stacked(2 * stage)));
            });
            p.dot_wait(sum);
            const auto both = p.cast(type<T>, sum);
            auto gate = p.columns(both, shape<C::n>, 0), up = p.columns(both, shape<C::n>, C::n);
            if (tall || !a.by_gate.data) {
              auto y = map([](float g, float u) { return SiluUp{}(g, u, sigmoid(g)); }, gate, up);
              p.store_tile(a.y, 0, r0, c0, y, s.out);
              return;
            }
            auto y = gate;
            update_all(
                [](float& gate, float& up, float& y) {
                  const float g = gate, u = up, s = sigmoid(g);
                  y = SiluUp{}(g, u, s);
                  gate = SiluUpByGate{}(g, u, s);
                  up = SiluUpByUp{}(g, s);
                },
                gate, up, y);
            p.store_tile(a.y, 0, r0, c0, y, s.out);
            p.store_tile(a.by_gate, 0, r0, c0, gate, s.out);
            p.store_tile(a.by_up, 0, r0, c0, up, s.out);
          });
    });
  }
};

template <class T>
struct GateUpSpace {
  template <int M, int N, int S, int Threads, int Groups = 1>
  using Hopper = GemmConfig<Lowering::kHopper, M, N, 64, S, Threads, Groups>;
  using type = KernelSpace<GateUp, T, Hopper<128, 64, 5, 128, 2>, Hopper<192, 64, 4, 128, 2>,
                           GemmConfig<Lowering::kAmpere, 64, 64, 64, 3, 128>>;
};
template <>
struct GateUpSpace<float> {
  using type =
      KernelSpace<GateUp, float,
                  GemmConfig<Lowering::kAmpere, 64, 64, 32, 3, 128, 1, 16, 1, DotPrecision::kFp32>,
                  GemmConfig<Lowering::kAmpere, 64, 64, 32, 3, 128, 1, 16, 1, DotPrecision::kTf32>>;
};

template <class T>
using GateUpKernels = KernelList<typename GateUpSpace<T>::type>;

}  // namespace cria::kernels
