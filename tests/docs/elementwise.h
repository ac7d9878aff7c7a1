// A function of one's own and a layout of one's own, in docs/tile.md.
#pragma once

#include "docs/vector_add.h"

namespace cria::docs {

// y = f(x)
template <class T>
struct UnaryArgs {
  using Element = T;
  Tensor<const T> x;  // [N]
  Tensor<T> y;        // [N]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("y", y);
  }
  Dims dims() const { return {{"n", x.cols}}; }
  Cost cost() const {
    return {.bytes_read = double(x.bytes()), .bytes_written = double(y.bytes())};
  }
};

template <class T>
struct GeluArgs : UnaryArgs<T> {
  static constexpr const char* kernel = "gelu";
};

template <class T, class C>
struct Gelu {
  using Element = T;
  using Config = C;
  using Args = GeluArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return {ceil_div(a.x.cols, C::block)}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    auto i = p.arange(shape<C::block>) + p.program_id(0) * C::block;
    auto x = p.load(a.x.data, i, i < a.x.cols);
    // [map]
    auto y = map(
        [](float x) { return 0.5f * x * (1 + tanh(0.79788456f * (x + 0.044715f * x * x * x))); },
        x);
    // [end]
    p.store(a.y.data, i, y, i < a.x.cols);
  }
};

template <class T>
struct CopyArgs : UnaryArgs<T> {
  static constexpr const char* kernel = "copy";
};

template <int Block, int Threads, bool InRuns>
struct CopyConfig {
  static constexpr int block = Block, threads = Threads;
  static constexpr bool in_runs = InRuns;
  static std::string name() { return in_runs ? "runs" : "blocked"; }
};

template <class T, class C>
struct Copy {
  using Element = T;
  using Config = C;
  using Args = CopyArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return {ceil_div(a.x.cols, C::block)}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    auto i = p.arange(shape<C::block>) + p.program_id(0) * C::block;
    auto inside = i < a.x.cols;
    if constexpr (C::in_runs) {
      // [runs]
      auto x = p.load(Runs<C::block, C::threads>{}, a.x.data, i, inside);
      p.store(a.y.data, i, x, inside);
      // [end]
    } else {
      p.store(a.y.data, i, p.load(a.x.data, i, inside), inside);
    }
  }
};

template <class T>
using ElementwiseKernels =
    KernelList<KernelSpace<Gelu, T, BlockConfig<1024, 128>>,
               KernelSpace<Copy, T, CopyConfig<1024, 128, false>, CopyConfig<1024, 128, true>>>;

}  // namespace cria::docs
