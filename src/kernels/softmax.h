// Softmax over the rows of a matrix, any width.
//   forward   y = exp(x - m) / sum exp(x - m),  m = max x
//   backward  dx = y (dy - sum dy y)
// A row that fits stays in registers. A wider one is walked twice, with a running maximum m and a
// running sum s: when a block raises m to m', s becomes s exp(m - m') plus the block's own
// exponentials.
#pragma once

#include "kernels/rows.h"

namespace cria::kernels {

template <class T>
struct SoftmaxForwardArgs {
  using Element = T;
  static constexpr const char* kernel = "softmax_forward";
  Tensor<const T> x;  // [R, D]
  Tensor<T> y;        // [R, D], may be x

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("y", y);
  }
  Dims dims() const { return {{"rows", x.rows}, {"cols", x.cols}}; }
  Cost cost() const {
    return {.flops = 5.0 * x.size(),
            .bytes_read = double(x.bytes()),
            .bytes_written = double(y.bytes())};
  }
};

template <class T, class C>
struct SoftmaxForward {
  using Element = T;
  using Config = C;
  using Args = SoftmaxForwardArgs<T>;
  static constexpr Traits traits = C::traits;
  static constexpr float kNothing = -3.4e38f;  // beyond the row's end: its exponential is 0
  static bool fits(const Args& a) { return C::fits(a.x.cols); }
  static Grid grid(const Args& a) { return row_grid<C>(a.x); }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int r0 = p.program_id(0) * C::rows, n = a.x.cols;
    auto rows = column(p.arange(shape<C::rows>) + r0);
    auto cols = row(p.arange(shape<C::cols>));
    if (n <= C::cols) {
      auto x = p.load(a.x.data, rows * a.x.ld + cols, rows < a.x.rows && cols < n, kNothing);
      auto e = p.keep(exp(x - p.max(x, axis<1>)));
      p.store(a.y, e * (1.f / p.sum(e, axis<1>)), r0, 0);
    } else if constexpr (C::walks) {
      float top = kNothing, total = 0;
      for (int start = 0; start < n; start += C::cols) {
        auto j = p.arange(shape<C::cols>) + start;
        auto x = p.load(a.x.row(r0), j, j < n, kNothing);
        const float higher = max(top, p.max(x));
        total = total * exp(top - higher) + p.sum(exp(x - higher));
        top = higher;
      }
      const float scale = 1.f / total;
      for (int start = 0; start < n; start += C::cols) {
        auto j = p.arange(shape<C::cols>) + start;
        p.store(a.y.row(r0), j, exp(p.load(a.x.row(r0), j, j < n) - top) * scale, j < n);
      }
    }
  }
};

template <class T>
struct SoftmaxBackwardArgs {
  using Element = T;
  static constexpr const char* kernel = "softmax_backward";
  Tensor<const T> y;   // [R, D]
  Tensor<const T> dy;  // [R, D]
  Tensor<T> dx;        // [R, D], may be y or dy

  template <class V>
  constexpr void operands(V&& visit) {
    visit("y", y), visit("dy", dy), visit("dx", dx);
  }
  Dims dims() const { return {{"rows", y.rows}, {"cols", y.cols}}; }
  Cost cost() const {
    return {.flops = 4.0 * y.size(),
            .bytes_read = double(y.bytes() + dy.bytes()),
            .bytes_written = double(dx.bytes())};
  }
};

template <class T, class C>
struct SoftmaxBackward {
  using Element = T;
  using Config = C;
  using Args = SoftmaxBackwardArgs<T>;
  static constexpr Traits traits = C::traits;
  static bool fits(const Args& a) { return C::fits(a.y.cols); }
  static Grid grid(const Args& a) { return row_grid<C>(a.y); }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int r0 = p.program_id(0) * C::rows, n = a.y.cols;
    if (n <= C::cols) {
      auto y = p.load(a.y, shape<C::rows, C::cols>, r0, 0);
      auto dy = p.load(a.dy, shape<C::rows, C::cols>, r0, 0);
      p.store(a.dx, y * (dy - p.sum(dy * y, axis<1>)), r0, 0);
    } else if constexpr (C::walks) {
      float mean = 0;  // of dy, weighted by y
      for (int start = 0; start < n; start += C::cols)
        mean += p.sum(p.load(a.dy, shape<1, C::cols>, r0, start) *
                      p.load(a.y, shape<1, C::cols>, r0, start));
      for (int start = 0; start < n; start += C::cols) {
        auto y = p.load(a.y, shape<1, C::cols>, r0, start);
        auto dy = p.load(a.dy, shape<1, C::cols>, r0, start);
        p.store(a.dx, y * (dy - mean), r0, start);
      }
    }
  }
};

template <class T>
using SoftmaxKernels = KernelList<RowSpace<SoftmaxForward, T>, RowSpace<SoftmaxBackward, T>>;

}  // namespace cria::kernels
