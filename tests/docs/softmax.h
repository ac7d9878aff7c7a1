// Rows and reductions in docs/tile.md: softmax of each row, and of the causal part of a square
// matrix.
#pragma once

#include "docs/vector_add.h"

namespace cria::docs {

template <class T>
struct SoftmaxArgs {
  using Element = T;
  static constexpr const char* kernel = "softmax";
  Tensor<const T> x;  // [R, N]
  Tensor<T> y;        // [R, N]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("y", y);
  }
  Dims dims() const { return {{"rows", y.rows}, {"cols", y.cols}}; }
  Cost cost() const {
    return {.flops = 5.0 * y.size(),
            .bytes_read = double(x.bytes()),
            .bytes_written = double(y.bytes())};
  }
};

template <class T, class C>
struct Softmax {
  using Element = T;
  using Config = C;
  using Args = SoftmaxArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  // [softmax_fits]
  static bool fits(const Args& a) { return a.x.cols <= C::block; }
  static Grid grid(const Args& a) { return {a.x.cols > 0 ? a.x.rows : 0}; }
  // [end]

  // [softmax]
  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int row = p.program_id(0), n = a.x.cols;
    auto j = p.arange(shape<C::block>);
    auto x = p.load(a.x.row(row), j, j < n, -kInfinity);
    auto e = p.keep(exp(x - p.max(x)));
    p.store(a.y.row(row), j, e / p.sum(e), j < n);
  }
  // [end]
};

template <class T>
using SoftmaxKernels =
    KernelList<KernelSpace<Softmax, T, BlockConfig<1024, 128>, BlockConfig<4096, 256>>>;

// Row i of a square matrix counts its first i + 1 columns; the others become 0.
template <class T>
struct CausalSoftmaxArgs : SoftmaxArgs<T> {
  static constexpr const char* kernel = "causal_softmax";
  Cost cost() const {
    const double n = this->x.cols;
    return {.flops = 2.5 * n * (n + 1),
            .bytes_read = double(this->x.bytes()),
            .bytes_written = double(this->y.bytes())};
  }
};

template <int Rows, int Cols, int Threads>
struct BlockConfig2d {
  static constexpr int rows = Rows, cols = Cols, threads = Threads;
  static std::string name() { return std::to_string(rows) + "x" + std::to_string(cols); }
};

template <class T, class C>
struct CausalSoftmax {
  using Element = T;
  using Config = C;
  using Args = CausalSoftmaxArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static bool fits(const Args& a) { return a.x.cols <= C::cols; }
  static Grid grid(const Args& a) { return {ceil_div(a.x.rows, C::rows)}; }

  // [causal_softmax]
  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    auto i = column(p.arange(shape<C::rows>) + p.program_id(0) * C::rows);
    auto j = row(p.arange(shape<C::cols>));
    auto inside = i < a.x.rows && j < a.x.cols;
    auto x = p.load(a.x.data, i * a.x.ld + j, inside);
    auto score = p.keep(p.where(i >= j, x, -1e30f));
    auto e = p.keep(exp(score - p.max(score, axis<1>)));
    p.store(a.y.data, i * a.y.ld + j, e / p.sum(e, axis<1>), inside);
  }
  // [end]
};

template <class T>
using CausalSoftmaxKernels = KernelList<KernelSpace<CausalSoftmax, T, BlockConfig2d<8, 128, 128>>>;

}  // namespace cria::docs
