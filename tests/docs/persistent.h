// Persistent loops, grid barriers and gathers in docs/tile.md.
#pragma once

#include "docs/vector_add.h"

namespace cria::docs {

// y = x / max |x| over the whole vector.
template <class T>
struct NormalizeArgs {
  using Element = T;
  static constexpr const char* kernel = "normalize";
  static constexpr int block = 1024;
  Tensor<const T> x;    // [N]
  Tensor<float> peaks;  // [ceil(N / block)], scratch
  Tensor<T> y;          // [N]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("peaks", peaks), visit("y", y);
  }
  Dims dims() const { return {{"n", x.cols}}; }
  Cost cost() const {
    return {.flops = 2.0 * x.size(),
            .bytes_read = double(x.bytes() + peaks.bytes()),
            .bytes_written = double(y.bytes() + peaks.bytes())};
  }
};

template <class T, class C>
struct Normalize {
  using Element = T;
  using Config = C;
  using Args = NormalizeArgs<T>;

  // [normalize]
  static constexpr Traits traits{.threads = C::threads, .cooperative = true};
  static Grid grid(const Args& a) { return {ceil_div(a.x.cols, Args::block)}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int tiles = ceil_div(a.x.cols, Args::block);
    p.for_tiles(tiles, [&](int t) {
      auto i = p.arange(shape<Args::block>) + t * Args::block;
      p.store(a.peaks.data + t, p.max(abs(p.load(a.x.data, i, i < a.x.cols))));
    });
    p.grid_sync();  // all peaks are in memory
    float peak = 0;
    for (int t = 0; t < tiles; t += Args::block) {
      auto i = p.arange(shape<Args::block>) + t;
      peak = max(peak, p.max(p.load_fresh(a.peaks.data, i, i < tiles)));
    }
    p.for_tiles(tiles, [&](int t) {
      auto i = p.arange(shape<Args::block>) + t * Args::block;
      p.store(a.y.data, i, p.load(a.x.data, i, i < a.x.cols) / peak, i < a.x.cols);
    });
  }
  // [end]
};

template <class T>
using NormalizeKernels = KernelList<KernelSpace<Normalize, T, BlockConfig<1024, 128>>>;

// y[i] = x[index[i]]
template <class T>
struct TakeArgs {
  using Element = T;
  static constexpr const char* kernel = "take";
  Tensor<const T> x;            // [M], every element used
  Tensor<const int32_t> index;  // [N], in [0, M)
  Tensor<T> y;                  // [N]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x, element_wise), visit("index", index), visit("y", y);
  }
  Dims dims() const { return {{"n", y.cols}}; }
  Cost cost() const {
    return {.bytes_read = double(x.bytes() + index.bytes()), .bytes_written = double(y.bytes())};
  }
};

template <class T, class C>
struct Take {
  using Element = T;
  using Config = C;
  using Args = TakeArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return {ceil_div(a.y.cols, C::block)}; }

  // [take]
  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    auto i = p.arange(shape<C::block>) + p.program_id(0) * C::block;
    auto inside = i < a.y.cols;
    auto index = p.load(a.index.data, i, inside);
    p.store(a.y.data, i, p.gather(a.x.data, index, inside), inside);
  }
  // [end]
};

template <class T>
using TakeKernels = KernelList<KernelSpace<Take, T, BlockConfig<1024, 128>>>;

}  // namespace cria::docs
