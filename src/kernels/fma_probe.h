// What the arithmetic units can do at most: chains of fused multiply-adds on values that stay in
// registers.  y = f(f(...f(x))),  f(x) = a x + b
#pragma once

#include "kernels/config.h"
#include "kernels/list.h"

namespace cria::kernels {

template <class T>
struct FmaProbeArgs {
  using Element = T;
  static constexpr const char* kernel = "fma_probe";
  static constexpr int chain = 16;  // applications of f in a round
  Tensor<T> y;                      // [R, N], starts from x = row number
  int rounds = 1;
  float a = 0.5f, b = 1.0f;

  template <class V>
  constexpr void operands(V&& visit) {
    visit("y", y);
  }
  Dims dims() const { return {{"rows", y.rows}, {"cols", y.cols}, {"rounds", rounds}}; }
  Cost cost() const {
    return {.flops = 2.0 * chain * rounds * y.size(), .bytes_written = double(y.bytes())};
  }
};

template <class T, class C>
struct FmaProbe {
  using Element = T;
  using Config = C;
  using Args = FmaProbeArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return {ceil_div(a.y.cols, C::cols), a.y.rows}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& args) {
    const int row = p.program_id(1), start = p.program_id(0) * C::cols;
    const float a = args.a, b = args.b;
    auto x = p.full(shape<1, C::cols>, float(row));
    auto four = [=](float v) { return a * (a * (a * (a * v + b) + b) + b) + b; };
    // A CPU's window over the program must hold as many chains as keep its units busy: a chain of 16
    // on each of the vectors in flight does not fit on Zen 5, one of 8 does.
    for (int i = 0; i < args.rounds; ++i) {
      update(x, [=](float v) { return four(four(v)); });
      update(x, [=](float v) { return four(four(v)); });
    }
    auto cols = p.arange(shape<C::cols>) + start;
    p.store(args.y.row(row), cols, x, cols < args.y.cols);
  }
};

template <class T>
using FmaProbeKernels =
    KernelList<KernelSpace<FmaProbe, T, BlockConfig<2048, 256>, BlockConfig<1024, 256>>>;

}  // namespace cria::kernels
