// What becomes of a new token's [q | k | v]: its queries and keys turn by the angle of its position
// (rope.h), and keys and values go to their row of the cache:
//   queries = turned(q),   keys[position] = turned(k),   values[position] = v
// The position is in device memory, so that one launch, kept in a graph, serves every token.
#pragma once

#include "kernels/rope.h"

namespace cria::kernels {

template <class T>
struct PlaceQkvArgs {
  using Element = T;
  static constexpr const char* kernel = "place_qkv";
  Tensor<const T> q;               // [H, K], of even K
  Tensor<const T> k;               // [G, K]
  Tensor<const T> v;               // [G, K]
  Tensor<T> queries;               // [H, K], may be q
  Tensor<T> keys;                  // [G, S, K]
  Tensor<T> values;                // [G, S, K]
  Tensor<const float> cos;         // [>= S, K/2]: see fill_rope_tables
  Tensor<const float> sin;         // [>= S, K/2]
  Tensor<const int32_t> position;  // [1], 0 ... S - 1

  // Halves of heads may begin anywhere, and there is little to move: element by element.
  template <class V>
  constexpr void operands(V&& visit) {
    visit("q", q, element_wise), visit("k", k, element_wise), visit("v", v, element_wise);
    visit("queries", queries, element_wise);
    visit("keys", keys, element_wise), visit("values", values, element_wise);
    visit("cos", cos, element_wise), visit("sin", sin, element_wise);
    visit("position", position, element_wise);
  }
  Dims dims() const { return {{"heads", q.rows}, {"kv_heads", k.rows}, {"head_dim", q.cols}}; }
  Cost cost() const {
    if (q.size() == 0) return {};
    const double moved = double(q.bytes() + k.bytes() + v.bytes());
    return {.flops = 3.0 * (q.size() + k.size()),
            .bytes_read = moved + sizeof(float) * q.cols + double(position.bytes()),
            .bytes_written = moved};
  }
};

// A program takes C::rows heads, of q, of k or of v.
template <class T, class C>
struct PlaceQkv {
  using Element = T;
  using Config = C;
  using Args = PlaceQkvArgs<T>;
  static constexpr int vec = 1;
  static constexpr Traits traits{.threads = C::threads};
  static bool fits(const Args& a) { return a.q.cols % 2 == 0 && a.q.cols <= 2 * C::cols; }
  static Grid grid(const Args& a) {
    if (a.q.size() == 0) return {0};
    return {ceil_div(a.q.rows, C::rows) + 2 * ceil_div(a.k.rows, C::rows)};
  }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int of_q = ceil_div(a.q.rows, C::rows), of_k = ceil_div(a.k.rows, C::rows);
    const int id = p.program_id(0), t = p.load(a.position.data);
    const bool is_key = id < of_q + of_k;
    const int h = (id < of_q ? id : is_key ? id - of_q : id - of_q - of_k) * C::rows;
    if (id < of_q)
      move<true>(p, a, a.q, h, a.queries.row(h), a.queries.ld, t);
    else if (is_key)
      move<true>(p, a, a.k, h, a.keys.at(h, t, 0), next_head(a.keys), t);
    else
      move<false>(p, a, a.v, h, a.values.at(h, t, 0), next_head(a.values), t);
  }

 private:
  static constexpr int64_t next_head(const Tensor<T>& cache) {
    return cache.heads > 1 ? cache.head_stride : cache.batch_stride;
  }

  // Heads h, h + 1, ... of `from` to `to`, where heads are `stride` apart.
  template <bool Turn, class P>
  CRIA_FN static void move(P& p, const Args& a, Tensor<const T> from, int h, T* to, int64_t stride,
                           int t) {
    const int half = a.q.cols / 2;
    auto i = column(p.arange(shape<C::rows>));
    auto d = p.arange(shape<C::cols>);
    auto j = row(d);
    const Mask mask = i < from.rows - h && j < half;
    auto low = p.keep(p.load(from.row(h), i * from.ld + j, mask));
    auto high = p.keep(p.load(from.row(h) + half, i * from.ld + j, mask));
    if constexpr (Turn) {
      auto cos = p.load(cols_of(low), a.cos.row(t), d, d < half);
      auto sin = p.load(cols_of(low), a.sin.row(t), d, d < half);
      p.store(to, i * stride + j, turned_low(low, high, cos, sin), mask);
      p.store(to + half, i * stride + j, turned_high(low, high, cos, sin), mask);
    } else {
      p.store(to, i * stride + j, low, mask);
      p.store(to + half, i * stride + j, high, mask);
    }
  }
};

// Tiles by half a head's width.
template <class T>
using PlaceQkvKernels = KernelList<KernelSpace<PlaceQkv, T, TileConfig<8, 32, 128>,
                                               TileConfig<8, 64, 128>, TileConfig<8, 128, 128>>>;

}  // namespace cria::kernels
