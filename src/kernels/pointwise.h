// Steps of a model that no other kernel takes along.
//   multiply      z = x y
//   scale         y = factor x
//   causal_mask   x[t, s] = lowest for s > t + S - T, per matrix [T, S]: scores of later positions
//   copy_heads    y = x between two orders of heads, [B, T, H, K] and [B, H, T, K]
#pragma once

#include "kernels/elementwise.h"

namespace cria::kernels {

template <class T>
struct MultiplyArgs {
  using Element = T;
  static constexpr const char* kernel = "multiply";
  Tensor<const T> x;  // [M, F]
  Tensor<const T> y;  // [M, F]
  Tensor<T> z;        // [M, F], may be x or y

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("y", y), visit("z", z);
  }
  Dims dims() const { return {{"rows", z.rows}, {"cols", z.cols}}; }
  Cost cost() const {
    return {.flops = double(z.size()),
            .bytes_read = double(x.bytes() + y.bytes()),
            .bytes_written = double(z.bytes())};
  }
};

template <class T, class C>
struct Multiply {
  using Element = T;
  using Config = C;
  using Args = MultiplyArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return elementwise_grid(C::cols, a.x, a.y, a.z); }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const auto [row, start, n] = walk(a.x, a.y, a.z).stretch(p.program_id(0), C::cols);
    auto j = p.arange(shape<C::cols>) + start;
    auto x = p.load(a.x.row(row), j, j < n), y = p.load(a.y.row(row), j, j < n);
    p.store(a.z.row(row), j, x * y, j < n);
  }
};

template <class T>
struct ScaleArgs {
  using Element = T;
  static constexpr const char* kernel = "scale";
  Tensor<const T> x;  // [M, F]
  Tensor<T> y;        // [M, F], may be x
  float factor = 1;

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("y", y);
  }
  Dims dims() const { return {{"rows", y.rows}, {"cols", y.cols}}; }
  Cost cost() const {
    return {.flops = double(y.size()),
            .bytes_read = double(x.bytes()),
            .bytes_written = double(y.bytes())};
  }
};

template <class T, class C>
struct Scale {
  using Element = T;
  using Config = C;
  using Args = ScaleArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return elementwise_grid(C::cols, a.x, a.y); }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const auto [row, start, n] = walk(a.x, a.y).stretch(p.program_id(0), C::cols);
    auto j = p.arange(shape<C::cols>) + start;
    p.store(a.y.row(row), j, p.load(a.x.row(row), j, j < n) * a.factor, j < n);
  }
};

template <class T>
struct CausalMaskArgs {
  using Element = T;
  static constexpr const char* kernel = "causal_mask";
  static constexpr float lowest = std::is_same_v<T, f16> ? -65504.f : -1e30f;  // finite
  Tensor<T> x;                                                                 // [B, T, S], S >= T

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x);
  }
  Dims dims() const { return {{"batch", x.batch}, {"rows", x.rows}, {"cols", x.cols}}; }
  Cost cost() const { return {.bytes_written = 0.5 * x.batch * x.rows * (x.rows - 1) * sizeof(T)}; }
};

// Rows are written from any column on, so element by element.
template <class T, class C>
struct CausalMask {
  using Element = T;
  using Config = C;
  using Args = CausalMaskArgs<T>;
  static constexpr int vec = 1;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return {a.x.rows, a.x.batch}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int r = p.program_id(0), b = p.program_id(1), n = a.x.cols;
    for (int start = r + n - a.x.rows + 1; start < n; start += C::cols) {
      auto j = p.arange(shape<C::cols>) + start;
      p.store(a.x.at(b, r, 0), j, p.full(shape<C::cols>, Args::lowest), j < n);
    }
  }
};

template <class T>
struct CopyHeadsArgs {
  using Element = T;
  static constexpr const char* kernel = "copy_heads";
  Tensor<const T> x;  // [B * H, T, K]
  Tensor<T> y;        // [B * H, T, K]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("y", y);
  }
  Dims dims() const { return {{"heads", y.batch}, {"rows", y.rows}, {"head_dim", y.cols}}; }
  Cost cost() const {
    return {.bytes_read = double(x.bytes()), .bytes_written = double(y.bytes())};
  }
};

template <class T, class C>
struct CopyHeads {
  using Element = T;
  using Config = C;
  using Args = CopyHeadsArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) {
    return {ceil_div(a.y.rows, C::rows), a.y.batch, ceil_div(a.y.cols, C::cols)};
  }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int r0 = p.program_id(0) * C::rows, b = p.program_id(1), c0 = p.program_id(2) * C::cols;
    p.store(a.y, p.load(a.x, shape<C::rows, C::cols>, r0, c0, b), r0, c0, b);
  }
};

template <class T>
using PointwiseKernels =
    KernelList<ElementwiseSpace<Multiply, T>, ElementwiseSpace<Scale, T>,
               KernelSpace<CausalMask, T, BlockConfig<256, 128>>,
               KernelSpace<CopyHeads, T, TileConfig<32, 64, 128>, TileConfig<16, 128, 128>>>;

}  // namespace cria::kernels
