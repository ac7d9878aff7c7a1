// Tensors and blocks in docs/tile.md: transpose, with and without padding; a bias and a leaky ReLU.
#pragma once

#include "docs/softmax.h"

namespace cria::docs {

template <class T>
struct TransposeArgs {
  using Element = T;
  static constexpr const char* kernel = "transpose";
  Tensor<const T> x;  // [R, N]
  Tensor<T> y;        // [N, R]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("y", y);
  }
  Dims dims() const { return {{"rows", x.rows}, {"cols", x.cols}}; }
  Cost cost() const {
    return {.bytes_read = double(x.bytes()), .bytes_written = double(y.bytes())};
  }
};

template <int Pad>
struct TransposeConfig {
  static constexpr int side = 32, threads = 256, pad = Pad;
  static std::string name() { return "pad" + std::to_string(pad); }
};

template <class T, class C>
struct Transpose {
  using Element = T;
  using Config = C;
  using Args = TransposeArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static constexpr int vec = 1;

  // [transpose]
  static Grid grid(const Args& a) {
    return {ceil_div(a.x.cols, C::side), ceil_div(a.x.rows, C::side)};
  }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int c0 = p.program_id(0) * C::side, r0 = p.program_id(1) * C::side;
    auto x = p.load(a.x, shape<C::side, C::side>, r0, c0);
    p.store(a.y, p.trans(x, pad<C::pad>), c0, r0);
  }
  // [end]
};

template <class T>
using TransposeKernels =
    KernelList<KernelSpace<Transpose, T, TransposeConfig<1>, TransposeConfig<0>>>;

// y = leaky_relu(x + bias), slope 0.1 below zero.
template <class T>
struct BiasArgs {
  using Element = T;
  static constexpr const char* kernel = "bias_leaky_relu";
  Tensor<const T> x;     // [R, N]
  Tensor<const T> bias;  // [N]
  Tensor<T> y;           // [R, N]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("bias", bias), visit("y", y);
  }
  Dims dims() const { return {{"rows", x.rows}, {"cols", x.cols}}; }
  Cost cost() const {
    return {.flops = 3.0 * y.size(),
            .bytes_read = double(x.bytes() + (x.rows > 0 ? bias.bytes() : 0)),
            .bytes_written = double(y.bytes())};
  }
};

template <class T, class C>
struct BiasLeakyRelu {
  using Element = T;
  using Config = C;
  using Args = BiasArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) {
    return {ceil_div(a.x.cols, C::cols), ceil_div(a.x.rows, C::rows)};
  }

  // [bias]
  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int c0 = p.program_id(0) * C::cols, r0 = p.program_id(1) * C::rows;
    auto j = p.arange(shape<C::cols>) + c0;
    auto x = p.load(a.x, shape<C::rows, C::cols>, r0, c0);
    auto bias = p.load(cols_of(x), a.bias.data, j, j < a.bias.cols);
    auto h = x + bias;
    p.store(a.y, where(h > 0, h, 0.1f * h), r0, c0);
  }
  // [end]
};

template <class T>
using BiasKernels = KernelList<KernelSpace<BiasLeakyRelu, T, BlockConfig2d<16, 64, 128>>>;

}  // namespace cria::docs
