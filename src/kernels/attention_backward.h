// Flash attention, backward, without atomics: the same inputs give the same bits every time.
// With p = exp(scale q kᵀ - lse), recomputed block by block:
//   delta = row sums of dout o;   dp = dout vᵀ;   ds = p (dp - delta)
//   dq = scale ds k;   dk = scale dsᵀ q;   dv = pᵀ dout
// Two kernels, in this order. One walks the keys of a block of queries and makes dq; it leaves
// delta for the other, which walks the queries of a block of keys, all heads that share them, and
// makes dk and dv. That one works on transposed tiles, rows are keys, so that pᵀ and dsᵀ are
// register operands as they are. Given the tables of rotary embedding, dq and dk are turned back,
// in fp32, before they are stored. For heads wider than 128, see AttentionApartConfig.
#pragma once

#include "kernels/attention_backward_inputs.h"

namespace cria::kernels {

template <class T>
struct AttentionBackwardQArgs : AttentionBackwardInputs<T> {
  static constexpr const char* kernel = "attention_backward_q";
  Tensor<const T> o;    // [B * H, T, K], from the forward pass
  Tensor<T> dq;         // [B * H, T, K]
  Tensor<float> delta;  // [B * H, T], for attention_backward_kv

  template <class V>
  constexpr void operands(V&& visit) {
    AttentionBackwardInputs<T>::operands(visit);
    visit("o", o), visit("dq", dq);
    visit("lse", this->lse, element_wise), visit("delta", delta, element_wise);
  }
  Cost cost() const {
    if (dq.size() == 0) return {};
    return {.flops = this->scores() * (6.0 * dq.cols + 6) + 2.0 * o.size() + this->turn_flops(dq),
            .bytes_read = this->bytes_read(dq) + o.bytes(),
            .bytes_written = double(dq.bytes() + delta.bytes())};
  }
};

template <class T, class C>
struct AttentionBackwardQ {
  using Element = T;
  using Config = C;
  using Args = AttentionBackwardQArgs<T>;
  static constexpr int tiles = C::apart ? 1 : 2;  // of a stage
  struct Shared {
    SharedTile<T, C::queries, C::head_dim, C::prologues> q, dout;  // q holds dq at the end
    // Stages of k, then of v; apart, of either.
    SharedTile<T, C::keys, C::head_dim, tiles * C::stages> passing;
  };
  static constexpr Traits traits = C::traits;

  static bool fits(const Args& a) { return a.template fits<C>(); }
  // Persistent programs of 64 queries are for short rows: two to a multiprocessor hide most of what
  // beginning and ending cost each other.
  static bool suits(const Args& a, int cores) {
    return blocks(a).even(cores) &&
           (!C::traits.persistent || C::queries > 64 || blocks(a).blocks <= 16);
  }
  static Grid grid(const Args& a) { return {a.q.cols > 0 ? blocks(a).shares() : 0}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    const auto all = blocks(a);
    all.run(p, [&](int head, int block, int slot) {  // longest rows first
      run_block(p, a, s, head, (all.blocks - 1 - block) * C::queries, slot);
    });
  }

 private:
  static constexpr AttentionBlocks<C> blocks(const Args& a) {
    return {a.q.batch, ceil_div(a.q.rows, C::queries)};
  }
  template <class P>
  CRIA_FN static void run_block(P& p, const Args& a, Shared& s, int head, int r0, int slot) {
    constexpr int M = C::queries, N = C::keys;
    const int kv_head = head / (a.q.batch / a.k.batch);
    const int visible = a.causal ? min_of(r0 + M + a.past(), a.k.rows) : a.k.rows;
    const int first_last = a.causal ? r0 + a.past() : a.k.rows - 1;  // last key that query r0 sees
    const float to_log2 = a.scale * kLog2E;

    p.fetch(s.q[slot], a.q, head, r0, 0);
    p.fetch(s.dout[slot], a.dout, head, r0, 0);
    const int blocks = ceil_div(visible, N);
    p.pipeline(
        stages<C::stages>, C::apart ? 2 * blocks : blocks,
        [&](int i, int stage) {
          if constexpr (C::apart) {  // k is needed to the end
            p.fetch(s.passing[stage], i % 2 == 0 ? a.v : a.k, kv_head, i / 2 * N, 0);
          } else {
            p.fetch(s.passing[stage], a.k, kv_head, i * N, 0);
            p.fetch(s.passing[C::stages + stage], a.v, kv_head, i * N, 0);
          }
        },
        [&](auto& p, auto& steps) {
          auto dq = p.accumulator(shape<M, C::head_dim>);
          auto weight = p.accumulator(shape<M, N>), dscore = p.accumulator(shape<M, N>);
          auto query = column(p.arange(shape<M>) + r0) + row(p.arange(shape<1>));
          const Mask inside{a.q.rows - r0, 1};
          auto delta = p.full_rows(dq, 0.f);
          auto part =
              layout_of(p.accumulator(shape<M, 64>));  // few columns at a time cost few registers
          for (int c = 0; c < C::head_dim; c += 64)
            delta +=
                p.sum(p.load(part, a.o, r0, c, head) * p.load(part, a.dout, r0, c, head), axis<1>);
          p.store(a.delta.row(head), query, delta, inside);
          auto lse = p.keep(p.load(rows_of(dq), a.lse.row(head), query, inside));
          auto weigh = [&](int j) {  // the scores of block j
            update(weight, WeightOfScore{to_log2}, lse);
            if (j * N + N - 1 > first_last) {
              auto last = column(p.arange(shape<M>)) * a.causal + first_last;
              weight = p.where(last >= row(p.arange(shape<N>) + j * N), weight, 0.f);
            }
          };
          auto multiply_dq = [&](auto k) {
            update(dscore, GradientOfScore{}, delta, weight);
            p.dot(dq, p.cast(type<T>, dscore), k);
            if (!C::overlaps) p.dot_wait(dq);
          };
          p.fetch_wait();
          if constexpr (C::apart) {
            for (int j = 0; j < blocks; ++j) {
              steps.one([&](int, int stage) {
                p.dot(dscore, s.dout[slot], trans(s.passing[stage]), overwrite);
              });
              steps.one([&](int, int stage) {
                p.dot(weight, s.q[slot], trans(s.passing[stage]), overwrite);
                p.dot_wait(dscore, weight);
                weigh(j);
                multiply_dq(s.passing[stage]);
              });
            }
          } else {
            steps([&](int j, int stage) {
              p.dot(weight, s.q[slot], trans(s.passing[stage]), overwrite);
              p.dot(dscore, s.dout[slot], trans(s.passing[C::stages + stage]), overwrite);
              p.dot_wait(pending<1>, weight);
              weigh(j);
              p.dot_wait(dscore);
              multiply_dq(s.passing[stage]);
            });
          }
          p.dot_wait(dq);
          dq *= a.scale;
          a.template turn_back<C>(p, dq, a.past() + r0);
          p.store_tile(a.dq, head, r0, 0, dq, s.q[slot]);
        });
  }
};

template <class T>
struct AttentionBackwardKvArgs : AttentionBackwardInputs<T> {
  static constexpr const char* kernel = "attention_backward_kv";
  Tensor<const float> delta;  // [B * H, T], from attention_backward_q
  Tensor<T> dk;               // [B * G, S, K]
  Tensor<T> dv;               // [B * G, S, K]

  template <class V>
  constexpr void operands(V&& visit) {
    AttentionBackwardInputs<T>::operands(visit);
    visit("lse", this->lse), visit("delta", delta), visit("dk", dk), visit("dv", dv);
  }
  Cost cost() const {
    if (dk.size() == 0) return {};
    return {.flops = this->scores() * (8.0 * dk.cols + 6) + this->turn_flops(dk),
            .bytes_read = this->bytes_read(dk) + delta.bytes(),
            .bytes_written = double(dk.bytes() + dv.bytes())};
  }
};

template <class T, class C>
struct AttentionBackwardKv {
  using Element = T;
  using Config = C;
  using Args = AttentionBackwardKvArgs<T>;
  static constexpr int tiles = C::apart ? 1 : 2;  // of a stage
  struct Shared {
    SharedTile<T, C::keys, C::head_dim, C::prologues> k, v;  // hold dk and dv at the end
    // Stages of q, then of dout; apart, of either.
    SharedTile<T, C::queries, C::head_dim, tiles * C::stages> passing;
  };
  static constexpr Traits traits = C::traits;

  static bool fits(const Args& a) { return a.template fits<C>(); }
  static bool suits(const Args& a, int cores) { return blocks(a).even(cores); }
  static Grid grid(const Args& a) { return {a.k.cols > 0 ? blocks(a).shares() : 0}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    blocks(a).run(p, [&](int head, int block, int slot) {
      const int c0 = block / programs * C::keys;  // first keys first: most queries see them
      if constexpr (C::apart)
        run_apart(p, a, s, head, c0, block % programs == 1);
      else
        run_block(p, a, s, head, c0, slot);
    });
  }

 private:
  static constexpr int programs = C::apart ? 2 : 1;  // of a block of keys
  static constexpr AttentionBlocks<C> blocks(const Args& a) {
    return {a.k.batch, ceil_div(a.k.rows, C::keys) * programs};
  }
  // Of the queries that see key c0.
  CRIA_FN static int first_block(const Args& a, int c0) {
    return a.causal ? max_of(c0 - a.past(), 0) / C::queries : 0;
  }
  // Scores of keys from c0 on and queries from r0 on become weights.
  template <class P, class W, class L>
  CRIA_FN static void weigh(P& p, const Args& a, W& weight, const L& lse, float to_log2, int c0,
                            int r0) {
    update(weight, WeightOfScore{to_log2}, lse);
    if (a.causal && r0 + a.past() < c0 + C::keys - 1) {
      auto key = column(p.arange(shape<C::keys>) + (c0 - r0 - a.past()));
      weight = p.where(row(p.arange(shape<C::queries>)) >= key, weight, 0.f);
    }
  }
  // Values of queries from r0 on and before `inside`, one for each column of a tile.
  template <class P, class X>
  CRIA_FN static auto per_query(P& p, const X& tile, const Tensor<const float>& x, int head, int r0,
                                int inside) {
    auto query = p.arange(shape<C::queries>) + r0;
    return r0 + C::queries <= inside
               ? p.keep(p.load(cols_of(tile), x.row(head), query))
               : p.keep(p.load(cols_of(tile), x.row(head), query, query < inside));
  }
  template <class P>
  CRIA_FN static void run_block(P& p, const Args& a, Shared& s, int kv_head, int c0, int slot) {
    constexpr int M = C::queries, N = C::keys;
    const int group = a.q.batch / a.k.batch;
    const int first = first_block(a, c0), per_head = ceil_div(a.q.rows, M) - first;
    const float to_log2 = a.scale * kLog2E;

    p.fetch(s.k[slot], a.k, kv_head, c0, 0);
    p.fetch(s.v[slot], a.v, kv_head, c0, 0);
    p.pipeline(
        stages<C::stages>, per_head * group,
        [&](int j, int stage) {
          const int head = kv_head * group + j / per_head, r0 = (first + j % per_head) * M;
          p.fetch(s.passing[stage], a.q, head, r0, 0);
          p.fetch(s.passing[C::stages + stage], a.dout, head, r0, 0);
        },
        [&](auto& p, auto& steps) {
          auto dk = p.accumulator(shape<N, C::head_dim>), dv = p.accumulator(shape<N, C::head_dim>);
          auto weight = p.accumulator(shape<N, M>), dscore = p.accumulator(shape<N, M>);
          int head = kv_head * group, r0 = first * M, left = per_head * group;
          auto of_queries = [&](const Tensor<const float>& x) {
            return per_query(p, weight, x, head, r0, left > 0 ? a.q.rows : 0);
          };
          auto lse = of_queries(a.lse);
          p.fetch_wait();
          // Keys and queries past the end need no mask: a key has a row of its own, which is not
          // stored, and a query's zeros in q and dout are factors of all it gives.
          steps([&](int, int stage) {
            p.dot(weight, s.k[slot], trans(s.passing[stage]), overwrite);
            p.dot(dscore, s.v[slot], trans(s.passing[C::stages + stage]), overwrite);
            p.dot_wait(pending<1>, weight);
            weigh(p, a, weight, lse, to_log2, c0, r0);
            auto delta = of_queries(a.delta);
            --left, r0 += M;
            if (r0 >= a.q.rows) ++head, r0 = first * M;
            lse = of_queries(a.lse);                 // of the step to come
            auto rounded = p.cast(type<T>, weight);  // ends the life of weight, to save registers
            p.dot(dv, rounded, s.passing[C::stages + stage]);
            p.dot_wait(pending<1>, dscore);
            update(dscore, GradientOfScore{}, delta, rounded);
            p.dot(dk, p.cast(type<T>, dscore), s.passing[stage]);
            if (!C::overlaps) p.dot_wait(dv, dk);
          });
          p.dot_wait(dv, dk);
          dk *= a.scale;
          a.template turn_back<C>(p, dk, c0);
          p.store_tile(a.dk, kv_head, c0, 0, dk, s.k[slot]);
          p.store_tile(a.dv, kv_head, c0, 0, dv, s.v[slot]);
        });
  }

  // The same for dv alone, or dk. Of q and dout, what the last product does not need comes first.
  template <class P>
  CRIA_FN static void run_apart(P& p, const Args& a, Shared& s, int kv_head, int c0, bool of_v) {
    constexpr int M = C::queries, N = C::keys;
    const int group = a.q.batch / a.k.batch;
    const int first = first_block(a, c0), per_head = ceil_div(a.q.rows, M) - first;
    const float to_log2 = a.scale * kLog2E;
    const int blocks = per_head * group;

    p.fetch(s.k[0], a.k, kv_head, c0, 0);
    if (!of_v) p.fetch(s.v[0], a.v, kv_head, c0, 0);
    p.pipeline(
        stages<C::stages>, 2 * blocks,
        [&](int i, int stage) {
          const int j = i / 2, head = kv_head * group + j / per_head;
          const auto& from = (i % 2 == 0) == of_v ? a.q : a.dout;
          p.fetch(s.passing[stage], from, head, (first + j % per_head) * M, 0);
        },
        [&](auto& p, auto& steps) {
          auto sum = p.accumulator(shape<N, C::head_dim>);
          auto weight = p.accumulator(shape<N, M>), dscore = p.accumulator(shape<N, M>);
          auto rounded = p.cast(type<T>, weight);
          p.fetch_wait();
          for (int j = 0; j < blocks; ++j) {
            const int head = kv_head * group + j / per_head, r0 = (first + j % per_head) * M;
            const auto lse = per_query(p, weight, a.lse, head, r0, a.q.rows);
            if (of_v) {
              steps.one([&](int, int stage) {
                p.dot(weight, s.k[0], trans(s.passing[stage]), overwrite);
                p.dot_wait(weight);
                weigh(p, a, weight, lse, to_log2, c0, r0);
                rounded = p.cast(type<T>, weight);
              });
              steps.one([&](int, int stage) {
                p.dot(sum, rounded, s.passing[stage]);
                p.dot_wait(sum);
              });
            } else {
              const auto delta = per_query(p, weight, a.delta, head, r0, a.q.rows);
              steps.one([&](int, int stage) {
                p.dot(dscore, s.v[0], trans(s.passing[stage]), overwrite);
              });
              steps.one([&](int, int stage) {
                p.dot(weight, s.k[0], trans(s.passing[stage]), overwrite);
                p.dot_wait(dscore, weight);
                weigh(p, a, weight, lse, to_log2, c0, r0);
                update(dscore, GradientOfScore{}, delta, weight);
                p.dot(sum, p.cast(type<T>, dscore), s.passing[stage]);
                p.dot_wait(sum);
              });
            }
          }
          if (of_v) {
            p.store_tile(a.dv, kv_head, c0, 0, sum, s.k[0]);
          } else {
            sum *= a.scale;
            a.template turn_back<C>(p, sum, c0);
            p.store_tile(a.dk, kv_head, c0, 0, sum, s.k[0]);
          }
        });
  }
};

template <class T>
struct AttentionBackwardSpaces {
  template <int M, int N, int D, int Stages, int Threads, int Resident = 1, bool Overlaps = false,
            bool Persistent = false>
  using Hopper = AttentionBackwardConfig<Lowering::kHopper, M, N, D, Stages, Threads, Resident,
                                         Overlaps, DotPrecision::kFp32, Persistent>;
  template <int M, int N, int D>
  using Ampere = AttentionBackwardConfig<Lowering::kAmpere, M, N, D, 2, 128>;
  template <Lowering Lower, int M, int N, int Threads>
  using Apart = AttentionApartConfig<Lower, M, N, 256, Threads>;
  using q =
      KernelSpace<AttentionBackwardQ, T, Hopper<64, 64, 64, 3, 128, 2, true, true>,
                  Hopper<128, 128, 64, 3, 256, 1, true, true>, Hopper<64, 64, 64, 3, 128, 2, true>,
                  Hopper<192, 64, 128, 3, 384>, Hopper<128, 64, 128, 3, 256, 1, true>,
                  Apart<Lowering::kHopper, 128, 64, 256>, Ampere<64, 64, 64>, Ampere<64, 32, 128>,
                  Apart<Lowering::kAmpere, 64, 32, 128>, Ampere<64, 32, 256>>;
  using kv =
      KernelSpace<AttentionBackwardKv, T, Hopper<64, 64, 64, 3, 128, 2, true, true>,
                  Hopper<64, 64, 64, 3, 128, 2, true>, Hopper<64, 128, 128, 3, 256>,
                  Apart<Lowering::kHopper, 64, 128, 256>, Ampere<64, 64, 64>, Ampere<32, 64, 128>,
                  Apart<Lowering::kAmpere, 32, 64, 128>, Ampere<32, 64, 256>>;
};
template <>
struct AttentionBackwardSpaces<float> {
  template <template <class, class> class K, template <int, int, DotPrecision> class Shaped,
            template <DotPrecision> class Apart>
  using Space =
      KernelSpace<K, float, Shaped<64, 64, DotPrecision::kFp32>,
                  Shaped<32, 128, DotPrecision::kFp32>, Shaped<64, 64, DotPrecision::kTf32>,
                  Shaped<32, 128, DotPrecision::kTf32>, Apart<DotPrecision::kTf32>,
                  Apart<DotPrecision::kFp32>, Shaped<16, 256, DotPrecision::kFp32>>;
  // Blocks of 64 that stay, and of `Walked` that pass by.
  template <int Walked, int D, DotPrecision Dot>
  using KeysPass = AttentionBackwardConfig<Lowering::kAmpere, 64, Walked, D, 2, 128, 1, false, Dot>;
  template <int Walked, int D, DotPrecision Dot>
  using QueriesPass =
      AttentionBackwardConfig<Lowering::kAmpere, Walked, 64, D, 2, 128, 1, false, Dot>;
  template <DotPrecision Dot>
  using KeysPassApart = AttentionApartConfig<Lowering::kAmpere, 64, 32, 256, 128, Dot>;
  template <DotPrecision Dot>
  using QueriesPassApart = AttentionApartConfig<Lowering::kAmpere, 32, 64, 256, 128, Dot>;
  using q = Space<AttentionBackwardQ, KeysPass, KeysPassApart>;
  using kv = Space<AttentionBackwardKv, QueriesPass, QueriesPassApart>;
};

template <class T>
using AttentionBackwardKernels =
    KernelList<typename AttentionBackwardSpaces<T>::q, typename AttentionBackwardSpaces<T>::kv>;

}  // namespace cria::kernels
