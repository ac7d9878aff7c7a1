// RMSNorm over the rows of a matrix (a vector is a matrix of one row), any width.
//   forward   y = x r w,  r = 1 / sqrt(mean(x²) + eps)
//   fused     h = x + residual, then y = h r w; h is kept for the next residual
//   backward  with g = dy w:  dx = r g - x r³ mean(g x);  dw = sum over rows of dy x r
#pragma once

#include "kernels/list.h"

namespace cria::kernels {

// Block: columns a program holds at once; wider rows are walked in blocks, twice.
template <int Block, int Threads>
struct RowConfig {
  static constexpr int block = Block, threads = Threads;
  static std::string name() {
    return "block" + std::to_string(Block) + "_threads" + std::to_string(Threads);
  }
};

template <class T>
struct RmsNormForwardArgs {
  using Element = T;
  static constexpr const char* kernel = "rmsnorm_forward";
  Tensor<const T> x;  // [R, D]
  Tensor<const T> w;  // [D]
  Tensor<T> y;        // [R, D]
  float eps = 1e-5f;

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("w", w), visit("y", y);
  }
  Dims dims() const { return {{"rows", x.rows}, {"cols", x.cols}}; }
  Cost cost() const {
    return {.flops = 4.0 * x.size(),
            .bytes_read = double(x.bytes() + (x.rows > 0 ? w.bytes() : 0)),
            .bytes_written = double(y.bytes())};
  }
};

template <class T, class C>
struct RmsNormForward {
  using Element = T;
  using Config = C;
  using Args = RmsNormForwardArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return {a.x.cols > 0 ? a.x.rows : 0}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int row = p.program_id(0), n = a.x.cols;
    const T* x_row = a.x.row(row);
    T* y_row = a.y.row(row);
    auto cols = p.arange(shape<C::block>);
    if (n <= C::block) {
      auto x = p.load(x_row, cols, cols < n);
      auto w = p.load(a.w.data, cols, cols < n);
      const float r = rsqrt(p.sum(x * x) / n + a.eps);
      p.store(y_row, cols, x * r * w, cols < n);
      return;
    }
    float squares = 0;
    for (int start = 0; start < n; start += C::block) {
      auto j = cols + start;
      auto x = p.load(x_row, j, j < n);
      squares += p.sum(x * x);
    }
    const float r = rsqrt(squares / n + a.eps);
    for (int start = 0; start < n; start += C::block) {
      auto j = cols + start;
      p.store(y_row, j, p.load(x_row, j, j < n) * r * p.load(a.w.data, j, j < n), j < n);
    }
  }
};

template <class T>
using RmsNormKernels =
    KernelList<KernelSpace<RmsNormForward, T, RowConfig<4096, 512>, RowConfig<4096, 256>,
                           RowConfig<1024, 128>, RowConfig<8192, 512>>>;

}  // namespace cria::kernels
