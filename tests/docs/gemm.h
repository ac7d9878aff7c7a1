// Shared tiles, pipelines and dot in docs/tile.md: a product, and attention in its simplest form.
#pragma once

#include "kernels/list.h"

namespace cria::docs {

using namespace kernels;

template <class T>
struct GemmArgs {
  using Element = T;
  static constexpr const char* kernel = "gemm";
  Tensor<const T> a;  // [M, K]
  Tensor<const T> b;  // [K, N]
  Tensor<T> c;        // [M, N]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("a", a), visit("b", b), visit("c", c);
  }
  Dims dims() const { return {{"m", c.rows}, {"n", c.cols}, {"k", a.cols}}; }
  Cost cost() const {
    if (c.size() == 0) return {};
    return {.flops = 2.0 * c.size() * a.cols,
            .bytes_read = double(a.bytes() + b.bytes()),
            .bytes_written = double(c.bytes())};
  }
};

// [gemm_config]
template <int BlockM, int BlockN, int BlockK, int StageCount, int Threads>
struct GemmConfig {
  static constexpr int m = BlockM, n = BlockN, k = BlockK, stages = StageCount, threads = Threads;
  static std::string name() {
    return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + "_stages" +
           std::to_string(stages);
  }
};
// [end]

template <class T, class C>
struct Gemm {
  using Element = T;
  using Config = C;
  using Args = GemmArgs<T>;
  static constexpr Traits traits{.threads = C::threads};

  // [gemm]
  struct Shared {
    SharedTile<T, C::m, C::k, C::stages> a;
    SharedTile<T, C::k, C::n, C::stages> b;
  };
  static Grid grid(const Args& a) { return {ceil_div(a.c.cols, C::n), ceil_div(a.c.rows, C::m)}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    const int c0 = p.program_id(0) * C::n, r0 = p.program_id(1) * C::m;
    p.pipeline(
        stages<C::stages>, ceil_div(a.a.cols, C::k),
        [&](int step, int stage) {
          p.fetch(s.a[stage], a.a, 0, r0, step * C::k);
          p.fetch(s.b[stage], a.b, 0, step * C::k, c0);
        },
        [&](auto& p, auto& steps) {
          auto acc = p.accumulator(shape<C::m, C::n>);
          steps([&](int, int stage) { p.dot(acc, s.a[stage], s.b[stage]); });
          p.dot_wait(acc);
          p.store(a.c, acc, r0, c0);
        });
  }
  // [end]
};

// [gemm_space]
template <class T>
using GemmKernels = KernelList<KernelSpace<Gemm, T, GemmConfig<64, 64, 64, 2, 128>,
                                           GemmConfig<128, 64, 32 * 4 / sizeof(T), 3, 256>>>;
// [end]

// o = softmax(scale q kᵀ) v, per head.
template <class T>
struct AttentionArgs {
  using Element = T;
  static constexpr const char* kernel = "attention";
  Tensor<const T> q;  // [H, T, 64]
  Tensor<const T> k;  // [H, S, 64]
  Tensor<const T> v;  // [H, S, 64]
  Tensor<T> o;        // [H, T, 64]
  float scale = 1;

  template <class V>
  constexpr void operands(V&& visit) {
    visit("q", q), visit("k", k), visit("v", v), visit("o", o);
  }
  Dims dims() const { return {{"heads", q.batch}, {"queries", q.rows}, {"keys", k.rows}}; }
  Cost cost() const {
    if (o.size() == 0) return {};
    return {.flops = 1.0 * q.batch * q.rows * k.rows * (4.0 * q.cols + 5),
            .bytes_read = double(q.bytes() + k.bytes() + v.bytes()),
            .bytes_written = double(o.bytes())};
  }
};

template <int Queries, int Keys, int HeadDim>
struct AttentionConfig {
  static constexpr int queries = Queries, keys = Keys, head_dim = HeadDim, threads = Queries * 2;
  static std::string name() { return std::to_string(queries) + "x" + std::to_string(keys); }
};

template <class T, class C>
struct Attention {
  using Element = T;
  using Config = C;
  using Args = AttentionArgs<T>;
  struct Shared {
    SharedTile<T, C::queries, C::head_dim> q;
    SharedTile<T, C::keys, C::head_dim, 2> k, v;
  };
  static constexpr Traits traits{.threads = C::threads};
  static bool fits(const Args& a) { return a.q.cols <= C::head_dim; }
  static Grid grid(const Args& a) { return {ceil_div(a.q.rows, C::queries), a.q.batch}; }

  // [attention]
  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    const int head = p.program_id(1), r0 = p.program_id(0) * C::queries;
    p.fetch(s.q[0], a.q, head, r0, 0);
    p.pipeline(
        stages<2>, ceil_div(a.k.rows, C::keys),
        [&](int step, int stage) {
          p.fetch(s.k[stage], a.k, head, step * C::keys, 0);
          p.fetch(s.v[stage], a.v, head, step * C::keys, 0);
        },
        [&](auto& p, auto& steps) {
          auto acc = p.accumulator(shape<C::queries, C::head_dim>);
          auto top = p.full_rows(acc, -1e30f);  // running maximum of each row
          auto total = p.full_rows(acc, 0.f);   // running sum of exponentials
          p.fetch_wait();                       // q, fetched outside the pipeline
          steps([&](int step, int stage) {
            auto score = p.accumulator(shape<C::queries, C::keys>);
            p.dot(score, s.q[0], trans(s.k[stage]));
            p.dot_wait(score);
            score *= a.scale;
            score =
                p.where(row(p.arange(shape<C::keys>) + step * C::keys) < a.k.rows, score, -1e30f);
            auto higher = max(top, p.max(score, axis<1>));
            score = exp(score - higher);
            auto shrink = exp(top - higher);  // what the new maximum scales the past by
            total = total * shrink + p.sum(score, axis<1>);
            acc *= shrink;
            p.dot(acc, p.cast(type<T>, score), s.v[stage]);
            p.dot_wait(acc);
            top = higher;
          });
          acc /= total;
          p.store(a.o, acc, r0, 0, head);
        });
  }
  // [end]
};

template <class T>
using AttentionKernels = KernelList<KernelSpace<Attention, T, AttentionConfig<64, 64, 64>>>;

}  // namespace cria::docs
