// Looking into a kernel in docs/tile.md: print, and a mistake that the tracer finds.
#pragma once

#include "docs/transpose.h"

namespace cria::docs {

template <class T>
struct RowSumsArgs {
  using Element = T;
  static constexpr const char* kernel = "row_sums";
  Tensor<const T> x;  // [4, 8]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x);
  }
  Dims dims() const { return {{"rows", x.rows}, {"cols", x.cols}}; }
  Cost cost() const { return {.flops = double(x.size()), .bytes_read = double(x.bytes())}; }
};

template <class T, class C>
struct RowSums {
  using Element = T;
  using Config = C;
  using Args = RowSumsArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args&) { return {1}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    // [print]
    auto x = p.load(a.x, shape<4, 8>, 0, 0);
    p.print("x", x);
    p.print("sums", p.sum(x, axis<1>));
    // [end]
  }
};

// Vector add whose author forgot the last block's mask.
template <class T>
struct UnmaskedAddArgs : VectorAddArgs<T> {
  static constexpr const char* kernel = "unmasked_add";
};

template <class T, class C>
struct UnmaskedAdd {
  using Element = T;
  using Config = C;
  using Args = UnmaskedAddArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return {ceil_div(a.z.cols, C::block)}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    // [unmasked]
    auto i = p.arange(shape<C::block>) + p.program_id(0) * C::block;
    p.store(a.z.data, i, p.load(a.x.data, i) + p.load(a.y.data, i));
    // [end]
  }
};

// Adds in place, and uses what it loaded after overwriting it.
template <class T>
struct StaleArgs {
  using Element = T;
  static constexpr const char* kernel = "add_twice";
  Tensor<T> x;  // [N]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x);
  }
  Dims dims() const { return {{"n", x.cols}}; }
  Cost cost() const {
    return {.flops = double(x.size()),
            .bytes_read = double(x.bytes()),
            .bytes_written = double(x.bytes())};
  }
};

template <class T, class C>
struct Stale {
  using Element = T;
  using Config = C;
  using Args = StaleArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args&) { return {1}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    auto i = p.arange(shape<C::block>);
    auto inside = i < a.x.cols;
    // [stale]
    auto x = p.load(a.x.data, i, inside);
    p.store(a.x.data, i, x + 1, inside);
    p.store(a.x.data, i, x + 2, inside);  // x is read again here: p.keep(p.load(...)) above
    // [end]
  }
};

template <class T>
using DebugKernels = KernelList<KernelSpace<RowSums, T, BlockConfig<32, 32>>,
                                KernelSpace<UnmaskedAdd, T, BlockConfig<1024, 128>>,
                                KernelSpace<Stale, T, BlockConfig<1024, 128>>>;

}  // namespace cria::docs
