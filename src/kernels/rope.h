// Rotary position embedding, Hugging Face's half-split convention: in each head of width K, element
// i < K/2 and its partner i + K/2 turn by the angle of position t,
//   y[i] = x[i] cos - x[i + K/2] sin,   y[i + K/2] = x[i + K/2] cos + x[i] sin
// The backward pass turns the gradient back: the same with -sin.
#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "base/tensor.h"
#include "kernels/config.h"
#include "kernels/list.h"

namespace cria::kernels {

// The elements i < K/2 of heads of even width K, and their partners.
template <class T>
struct HeadHalves {
  Tensor<T> low, high;  // [B * H, T, K/2]

  constexpr HeadHalves() = default;
  template <class U>
    requires std::is_convertible_v<Tensor<U>, Tensor<T>>
  constexpr HeadHalves(Tensor<U> heads) : low(heads) {
    low.cols /= 2;
    high = low;
    if (high.data) high.data += low.cols;
  }
};

template <class T, int Sign>
struct RopeArgs {
  using Element = T;
  static constexpr const char* kernel = Sign > 0 ? "rope_forward" : "rope_backward";
  HeadHalves<const T> x;    // of [B, T, H, K] or [B, H, T, K]
  Tensor<const float> cos;  // [S, K/2], S >= T + offset: see fill_rope_tables
  Tensor<const float> sin;  // [S, K/2]
  HeadHalves<T> y;          // of either layout, may be x
  int offset = 0;           // the position of row 0

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x_low", x.low), visit("x_high", x.high), visit("cos", cos), visit("sin", sin);
    visit("y_low", y.low), visit("y_high", y.high);
  }
  Dims dims() const {
    return {{"heads", x.low.batch}, {"rows", x.low.rows}, {"head_dim", 2 * x.low.cols}};
  }
  Cost cost() const {
    if (x.low.size() == 0) return {};
    return {.flops = 6.0 * x.low.size(),
            .bytes_read = 2.0 * x.low.bytes() + 2.0 * sizeof(float) * x.low.rows * x.low.cols,
            .bytes_written = 2.0 * y.low.bytes()};
  }
};
template <class T>
using RopeForwardArgs = RopeArgs<T, 1>;
template <class T>
using RopeBackwardArgs = RopeArgs<T, -1>;

// theta^(-2 i / head_dim) for each pair i: what a position is multiplied by to give the pair's
// angle.
std::vector<double> rope_frequencies(double theta, int head_dim);

// cos and sin of every position times every frequency, [positions, frequencies] each.
void fill_rope_tables(std::span<const double> frequencies, Tensor<float> cos, Tensor<float> sin);

// The formula, for numbers and for tiles.
template <class X, class C, class S>
CRIA_FN auto turned_low(const X& low, const X& high, const C& cos, const S& sin) {
  return low * cos - high * sin;
}
template <class X, class C, class S>
CRIA_FN auto turned_high(const X& low, const X& high, const C& cos, const S& sin) {
  return high * cos + low * sin;
}

// Widths of heads that other kernels can turn on the way: qkv forward, attention_backward back.
constexpr bool can_fuse_rope(int head_dim) { return head_dim == 64 || head_dim == 128; }

// A pair of elements in place, for p.update_pairs; Sign -1 turns it back.
template <int Sign>
struct TurnPair {
  CRIA_FN void operator()(float& low, float& high, float cos, float sin) const {
    const float a = low, b = high, s = sin * Sign;
    low = turned_low(a, b, cos, s), high = turned_high(a, b, cos, s);
  }
};

// A program turns a tile of heads x K/2 at one position where heads share a row, else of positions
// x K/2 of one head.
template <class T, class C, int Sign>
struct Rope {
  using Element = T;
  using Config = C;
  using Args = RopeArgs<T, Sign>;
  static constexpr Traits traits{.threads = C::threads};
  static bool fits(const Args& a) { return a.x.low.cols <= C::cols; }
  static Grid grid(const Args& a) {
    const Tensor<const T>& x = a.x.low;
    if (x.size() == 0) return {0};
    const int groups = x.batch / x.heads;
    if (x.heads > 1) return {int64_t{groups} * x.rows * ceil_div(x.heads, C::rows)};
    return {int64_t{groups} * ceil_div(x.rows, C::rows)};
  }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const Tensor<const T>& x = a.x.low;
    const int id = p.program_id(0), heads = x.heads;
    if (heads > 1) {
      const int blocks = ceil_div(heads, C::rows), h = id % blocks * C::rows;
      const int t = id / blocks % x.rows, group = id / blocks / x.rows;
      turn(p, a, group * heads + h, t, heads - h, next_head(x), next_head(a.y.low), 0);
    } else {
      const int blocks = ceil_div(x.rows, C::rows), t = id % blocks * C::rows;
      turn(p, a, id / blocks, t, x.rows - t, x.ld, a.y.low.ld, 1);
    }
  }

 private:
  // Elements from one head to the next at the same position.
  template <class E>
  CRIA_FN static int64_t next_head(const Tensor<E>& heads) {
    return heads.heads > 1 ? heads.head_stride : heads.batch_stride;
  }

  // `rows` of both halves from position t of a head on, by the strides of x and y; row i is at
  // position t + i step.
  template <class P>
  CRIA_FN static void turn(P& p, const Args& a, int head, int t, int rows, int64_t x_stride,
                           int64_t y_stride, int step) {
    auto i = column(p.arange(shape<C::rows>));
    auto j = row(p.arange(shape<C::cols>));
    const Mask mask = i < rows && j < a.x.low.cols;
    auto low = p.keep(p.load(a.x.low.at(head, t, 0), i * x_stride + j, mask));
    auto high = p.keep(p.load(a.x.high.at(head, t, 0), i * x_stride + j, mask));
    auto cos = p.load(a.cos.row(a.offset + t), i * (step * a.cos.ld) + j, mask);
    auto sin = p.load(a.sin.row(a.offset + t), i * (step * a.sin.ld) + j, mask) * float(Sign);
    p.store(a.y.low.at(head, t, 0), i * y_stride + j, turned_low(low, high, cos, sin), mask);
    p.store(a.y.high.at(head, t, 0), i * y_stride + j, turned_high(low, high, cos, sin), mask);
  }
};

template <class T, class C>
using RopeForward = Rope<T, C, 1>;
template <class T, class C>
using RopeBackward = Rope<T, C, -1>;

// Tiles by half a head's width, then by heads.
template <template <class, class> class K, class T>
using RopeSpace = KernelSpace<K, T, TileConfig<32, 32, 128>, TileConfig<16, 64, 128>,
                              TileConfig<16, 128, 128>, TileConfig<4, 512, 128>>;

template <class T>
using RopeKernels = KernelList<RopeSpace<RopeForward, T>, RopeSpace<RopeBackward, T>>;

}  // namespace cria::kernels
