// RMSNorm over the rows of a matrix (a vector is a matrix of one row), any width.
//   forward   y = x r w,  r = 1 / sqrt(mean(x²) + eps)
//   fused     h = x + residual, then y = h r w; h is kept for the next residual
// r may be saved for the backward pass, in rmsnorm_backward.h. A row that fits stays in registers;
// a wider one is walked twice.
#pragma once

#include "kernels/rows.h"

namespace cria::kernels {

template <class T>
struct RmsNormForwardArgs {
  using Element = T;
  static constexpr const char* kernel = "rmsnorm_forward";
  Tensor<const T> x;     // [R, D]
  Tensor<const T> w;     // [D]
  Tensor<T> y;           // [R, D], may be x
  Tensor<float> r = {};  // [R, 1]; not written when data is null
  float eps = 1e-5f;
  int terms =
      0;  // D, if x has zeros behind its rows and they are given as columns; 0: they are not

  constexpr int mean_of() const { return terms > 0 ? terms : x.cols; }
  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("w", w), visit("y", y), visit("r", r, element_wise);
  }
  Dims dims() const { return {{"rows", x.rows}, {"cols", x.cols}}; }
  Cost cost() const {
    if (x.size() == 0) return {};
    return {.flops = 4.0 * x.size(),
            .bytes_read = double(x.bytes() + w.bytes()),
            .bytes_written = double(y.bytes() + r.bytes())};
  }
};

template <class T, class C>
struct RmsNormForward {
  using Element = T;
  using Config = C;
  using Args = RmsNormForwardArgs<T>;
  static constexpr Traits traits = C::traits;
  static bool fits(const Args& a) { return C::fits(a.x.cols); }
  static Grid grid(const Args& a) { return row_grid<C>(a.x); }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int r0 = p.program_id(0) * C::rows, n = a.x.cols;
    if (n <= C::cols) {
      auto x = p.load(a.x, shape<C::rows, C::cols>, r0, 0);
      auto w = p.load(cols_of(x), a.w, 0, 0);
      auto r = rsqrt(p.sum(x * x, axis<1>) / a.mean_of() + a.eps);
      p.store(a.y, x * r * w, r0, 0);
      if (a.r.data) p.store(a.r, r, r0, 0);
    } else if constexpr (C::walks) {
      float squares = 0;
      for (int start = 0; start < n; start += C::cols) {
        auto x = p.load(a.x, shape<1, C::cols>, r0, start);
        squares += p.sum(x * x);
      }
      const float r = rsqrt(squares / a.mean_of() + a.eps);
      for (int start = 0; start < n; start += C::cols) {
        auto x = p.load(a.x, shape<1, C::cols>, r0, start);
        auto w = p.load(a.w, shape<1, C::cols>, 0, start);
        p.store(a.y, x * r * w, r0, start);
      }
      if (a.r.data) p.store(a.r.row(r0), r);
    }
  }
};

template <class T>
struct AddRmsNormForwardArgs {
  using Element = T;
  static constexpr const char* kernel = "add_rmsnorm_forward";
  Tensor<const T> x;         // [R, D]
  Tensor<const T> residual;  // [R, D]
  Tensor<const T> w;         // [D]
  Tensor<T> h;               // [R, D], may be x or residual
  Tensor<T> y;               // [R, D], may be x
  Tensor<float> r = {};      // [R, 1]; not written when data is null
  float eps = 1e-5f;
  int terms = 0;  // as in RmsNormForwardArgs

  constexpr int mean_of() const { return terms > 0 ? terms : x.cols; }
  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("residual", residual), visit("w", w), visit("h", h), visit("y", y);
    visit("r", r, element_wise);
  }
  Dims dims() const { return {{"rows", x.rows}, {"cols", x.cols}}; }
  Cost cost() const {
    if (x.size() == 0) return {};
    return {.flops = 5.0 * x.size(),
            .bytes_read = double(x.bytes() + residual.bytes() + w.bytes()),
            .bytes_written = double(h.bytes() + y.bytes() + r.bytes())};
  }
};

// h is rounded to its memory type before it is normalised, so the result is that of an addition and
// a normalisation in two kernels.
template <class T, class C>
struct AddRmsNormForward {
  using Element = T;
  using Config = C;
  using Args = AddRmsNormForwardArgs<T>;
  static constexpr Traits traits = C::traits;
  static bool fits(const Args& a) { return C::fits(a.x.cols); }
  static Grid grid(const Args& a) { return row_grid<C>(a.x); }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int r0 = p.program_id(0) * C::rows, n = a.x.cols;
    auto sum_at = [&](int start) {
      auto x = p.load(a.x, shape<C::rows, C::cols>, r0, start);
      auto residual = p.load(a.residual, shape<C::rows, C::cols>, r0, start);
      return p.keep(map([](float x, float y) { return rounded_to<T>(x + y); }, x, residual));
    };
    if (n <= C::cols) {
      auto h = sum_at(0);
      auto w = p.load(cols_of(h), a.w, 0, 0);
      p.store(a.h, h, r0, 0);
      auto r = rsqrt(p.sum(h * h, axis<1>) / a.mean_of() + a.eps);
      p.store(a.y, h * r * w, r0, 0);
      if (a.r.data) p.store(a.r, r, r0, 0);
    } else if constexpr (C::walks) {
      float squares = 0;
      for (int start = 0; start < n; start += C::cols) {
        auto h = sum_at(start);
        squares += p.sum(h * h);
      }
      const float r = rsqrt(squares / a.mean_of() + a.eps);
      for (int start = 0; start < n; start += C::cols) {
        auto h = sum_at(start);
        auto w = p.load(a.w, shape<1, C::cols>, 0, start);
        p.store(a.h, h, r0, start);
        p.store(a.y, h * r * w, r0, start);
      }
      if (a.r.data) p.store(a.r.row(r0), r);
    }
  }
};

template <class T>
using RmsNormKernels = KernelList<RowSpace<RmsNormForward, T>, RowSpace<AddRmsNormForward, T>>;

}  // namespace cria::kernels
