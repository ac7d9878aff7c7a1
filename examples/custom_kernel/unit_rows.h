// Rows scaled to length 1, as embeddings are before they are compared:  y = x / sqrt(sum x²)
// Rows of up to 4096 columns; a row of zeros becomes NaN.
#pragma once

#include "cria/kernels/list.h"

namespace cria::embeddings {

using namespace kernels;

template <class T>
struct UnitRowsArgs {
  using Element = T;
  static constexpr const char* kernel = "unit_rows";
  Tensor<const T> x;  // [R, D]
  Tensor<T> y;        // [R, D]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("y", y);
  }
  Dims dims() const { return {{"rows", x.rows}, {"cols", x.cols}}; }
  Cost cost() const {
    return {.flops = 3.0 * x.size(),
            .bytes_read = double(x.bytes()),
            .bytes_written = double(y.bytes())};
  }
};

template <int Block, int Threads>
struct UnitRowsConfig {
  static constexpr int block = Block, threads = Threads;
  static std::string name() { return "block" + std::to_string(block); }
};

template <class T, class C>
struct UnitRows {
  using Element = T;
  using Config = C;
  using Args = UnitRowsArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static bool fits(const Args& a) { return a.x.cols <= C::block; }
  static Grid grid(const Args& a) { return {a.x.cols > 0 ? a.x.rows : 0}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int row = p.program_id(0), n = a.x.cols;
    auto j = p.arange(shape<C::block>);
    auto x = p.load(a.x.row(row), j, j < n);
    const float scale = rsqrt(p.sum(x * x));
    p.store(a.y.row(row), j, x * scale, j < n);
  }
};

template <class T>
using UnitRowsKernels =
    KernelList<KernelSpace<UnitRows, T, UnitRowsConfig<1024, 128>, UnitRowsConfig<4096, 256>>>;

}  // namespace cria::embeddings
