// SiLU and the gated activation of SwiGLU, with s = 1 / (1 + exp(-x)):
//   silu      y = x s
//   backward  dx = dy s (1 + x (1 - s))
//   silu_up   y = silu(gate) up
//   backward  dgate = dy up s (1 + gate (1 - s)),  dup = dy silu(gate),  and y once more, if wanted
// gate and up may be two matrices, or the halves of one [M, 2F] buffer by their row stride.
#pragma once

#include "kernels/elementwise.h"

namespace cria::kernels {

// The derivative of silu at x, where s = sigmoid(x).
CRIA_FN float silu_slope(float x, float s) { return s + x * s * (1.f - s); }

// Elements of silu_up and its derivatives by gate and by up, where s = sigmoid(gate).
struct SiluUp {
  CRIA_FN float operator()(float gate, float up, float s) const { return gate * s * up; }
};
struct SiluUpByGate {
  CRIA_FN float operator()(float gate, float up, float s) const { return up * silu_slope(gate, s); }
};
struct SiluUpByUp {
  CRIA_FN float operator()(float gate, float s) const { return gate * s; }
};

template <class T>
struct SiluForwardArgs {
  using Element = T;
  static constexpr const char* kernel = "silu_forward";
  Tensor<const T> x;  // [M, F]
  Tensor<T> y;        // [M, F], may be x

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("y", y);
  }
  Dims dims() const { return {{"rows", x.rows}, {"cols", x.cols}}; }
  Cost cost() const {
    return {.flops = 4.0 * x.size(),
            .bytes_read = double(x.bytes()),
            .bytes_written = double(y.bytes())};
  }
};

template <class T, class C>
struct SiluForward {
  using Element = T;
  using Config = C;
  using Args = SiluForwardArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return elementwise_grid(C::cols, a.x, a.y); }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const auto [row, start, n] = walk(a.x, a.y).stretch(p.program_id(0), C::cols);
    auto j = p.arange(shape<C::cols>) + start;
    p.store(a.y.row(row), j, silu(p.load(a.x.row(row), j, j < n)), j < n);
  }
};

template <class T>
struct SiluBackwardArgs {
  using Element = T;
  static constexpr const char* kernel = "silu_backward";
  Tensor<const T> x;   // [M, F]
  Tensor<const T> dy;  // [M, F]
  Tensor<T> dx;        // [M, F], may be x or dy

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("dy", dy), visit("dx", dx);
  }
  Dims dims() const { return {{"rows", x.rows}, {"cols", x.cols}}; }
  Cost cost() const {
    return {.flops = 8.0 * x.size(),
            .bytes_read = double(x.bytes() + dy.bytes()),
            .bytes_written = double(dx.bytes())};
  }
};

template <class T, class C>
struct SiluBackward {
  using Element = T;
  using Config = C;
  using Args = SiluBackwardArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return elementwise_grid(C::cols, a.x, a.dy, a.dx); }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const auto [row, start, n] = walk(a.x, a.dy, a.dx).stretch(p.program_id(0), C::cols);
    auto j = p.arange(shape<C::cols>) + start;
    auto x = p.load(a.x.row(row), j, j < n), dy = p.load(a.dy.row(row), j, j < n);
    auto dx = map([](float x, float dy) { return dy * silu_slope(x, sigmoid(x)); }, x, dy);
    p.store(a.dx.row(row), j, dx, j < n);
  }
};

template <class T>
struct SiluUpForwardArgs {
  using Element = T;
  static constexpr const char* kernel = "silu_up_forward";
  Tensor<const T> gate;  // [M, F]
  Tensor<const T> up;    // [M, F]
  Tensor<T> y;           // [M, F], may be gate or up

  template <class V>
  constexpr void operands(V&& visit) {
    visit("gate", gate), visit("up", up), visit("y", y);
  }
  Dims dims() const { return {{"rows", y.rows}, {"cols", y.cols}}; }
  Cost cost() const {
    return {.flops = 5.0 * y.size(),
            .bytes_read = double(gate.bytes() + up.bytes()),
            .bytes_written = double(y.bytes())};
  }
};

template <class T, class C>
struct SiluUpForward {
  using Element = T;
  using Config = C;
  using Args = SiluUpForwardArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return elementwise_grid(C::cols, a.gate, a.up, a.y); }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const auto [row, start, n] = walk(a.gate, a.up, a.y).stretch(p.program_id(0), C::cols);
    auto j = p.arange(shape<C::cols>) + start;
    auto gate = p.load(a.gate.row(row), j, j < n), up = p.load(a.up.row(row), j, j < n);
    auto y = map([](float g, float u) { return SiluUp{}(g, u, sigmoid(g)); }, gate, up);
    p.store(a.y.row(row), j, y, j < n);
  }
};

template <class T>
struct SiluUpBackwardArgs {
  using Element = T;
  static constexpr const char* kernel = "silu_up_backward";
  Tensor<const T> gate;  // [M, F]
  Tensor<const T> up;    // [M, F]
  Tensor<const T> dy;    // [M, F]
  Tensor<T> dgate;       // [M, F], may be gate
  Tensor<T> dup;         // [M, F], may be up or dy
  Tensor<T> y = {};      // [M, F], may be dy; not written when data is null

  template <class V>
  constexpr void operands(V&& visit) {
    visit("gate", gate), visit("up", up), visit("dy", dy), visit("dgate", dgate), visit("dup", dup);
    visit("y", y);
  }
  Dims dims() const { return {{"rows", dy.rows}, {"cols", dy.cols}}; }
  Cost cost() const {
    return {.flops = 11.0 * dy.size() + double(y.size()),
            .bytes_read = double(gate.bytes() + up.bytes() + dy.bytes()),
            .bytes_written = double(dgate.bytes() + dup.bytes() + y.bytes())};
  }
};

template <class T, class C>
struct SiluUpBackward {
  using Element = T;
  using Config = C;
  using Args = SiluUpBackwardArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) {
    return elementwise_grid(C::cols, a.gate, a.up, a.dy, a.dgate, a.dup, a.y);
  }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const auto [row, start, n] =
        walk(a.gate, a.up, a.dy, a.dgate, a.dup, a.y).stretch(p.program_id(0), C::cols);
    auto j = p.arange(shape<C::cols>) + start;
    auto gate = p.load(a.gate.row(row), j, j < n), up = p.load(a.up.row(row), j, j < n);
    auto dy = p.load(a.dy.row(row), j, j < n);
    auto s = p.keep(sigmoid(gate));
    auto dgate = dy * map(SiluUpByGate{}, gate, up, s);
    auto dup = dy * map(SiluUpByUp{}, gate, s);
    if (a.y.data) {
      auto y = map(SiluUp{}, gate, up, s);
      p.store(a.y.row(row), j, y, j < n);
    }
    p.store(a.dgate.row(row), j, dgate, j < n);
    p.store(a.dup.row(row), j, dup, j < n);
  }
};

template <class T>
using SiluKernels =
    KernelList<ElementwiseSpace<SiluForward, T>, ElementwiseSpace<SiluBackward, T>,
               ElementwiseSpace<SiluUpForward, T>, ElementwiseSpace<SiluUpBackward, T>>;

}  // namespace cria::kernels
