// Flash attention, backward, in one pass: dq, dk and dv of a head of keys and of the heads that
// share it, five products instead of the seven of attention_backward.h, whose formulas these are.
// A program walks the queries of one block of keys after the other, on transposed tiles. dk and dv
// grow in registers while a block lasts; dq of all queries grows in shared memory, which is left to
// an assistant. So nothing is added up in an order that could change. Where shared memory holds dq
// of some queries only, they are taken in chunks, and dk and dv of the keys that a later chunk sees
// again wait in memory.
#pragma once

#include "kernels/attention_backward.h"

namespace cria::kernels {

// Rows of dq that a program holds, of all heads that share keys, and what they come in.
inline constexpr int kHeldQueries = 512, kQueryBlock = 128;

template <class T>
struct AttentionBackwardQkvArgs : AttentionBackwardInputs<T> {
  static constexpr const char* kernel = "attention_backward_qkv";
  Tensor<const T> o;     // [B * H, T, K], from the forward pass
  Tensor<T> dq;          // [B * H, T, K]
  Tensor<T> dk, dv;      // [B * G, S, K]
  Tensor<float> delta;   // [B * H, T]: scratch
  Tensor<float> so_far;  // [2 * B * G, seen_again(), K]: scratch, all dk, then all dv

  template <class V>
  constexpr void operands(V&& visit) {
    AttentionBackwardInputs<T>::operands(visit);
    visit("o", o), visit("dq", dq), visit("dk", dk), visit("dv", dv);
    visit("lse", this->lse), visit("delta", delta);
    visit("so_far", so_far);
  }
  constexpr int group() const { return this->q.batch / this->k.batch; }
  // Queries of a head that are taken at a time; none if too many heads share keys.
  constexpr int chunk() const { return kHeldQueries / kQueryBlock / group() * kQueryBlock; }
  // Keys that queries before q1 see.
  constexpr int seen_by(int q1) const {
    return q1 == 0 ? 0 : this->causal ? min_of(q1 + this->past(), this->k.rows) : this->k.rows;
  }
  // Keys that several chunks see.
  constexpr int seen_again() const {
    return chunk() > 0 ? seen_by((this->q.rows - 1) / chunk() * chunk()) : 0;
  }
  Cost cost() const {
    if (dq.size() == 0) return {};
    const double scratch = double(delta.bytes() + so_far.bytes());
    return {.flops = this->scores() * (10.0 * dq.cols + 6) + 2.0 * o.size() + this->turn_flops(dq) +
                     this->turn_flops(dk),
            .bytes_read = this->bytes_read(dk) + o.bytes() + scratch,
            .bytes_written = double(dq.bytes() + dk.bytes() + dv.bytes()) + scratch};
  }
};

template <class T, class C>
struct AttentionBackwardQkv {
  using Element = T;
  using Config = C;
  using Args = AttentionBackwardQkvArgs<T>;
  static constexpr bool assisted = C::traits.lowering == Lowering::kHopper;
  // Queries that dq is multiplied for at once: 16 for each warp of those that do it.
  static constexpr int block = assisted ? 64 : C::traits.threads / 2;
  static constexpr int parts = block / C::queries;
  static_assert(C::keys == C::traits.threads / 2 && parts * C::queries == block && parts <= 2);
  static_assert(kQueryBlock % block == 0);
  template <int I>
  static constexpr std::integral_constant<int, I> index{};
  struct Shared {
    SharedTile<T, C::keys, C::head_dim> k, v;
    SharedTile<T, C::queries, C::head_dim, C::stages> q, dout;
    SharedTile<T, C::keys, block, assisted ? 2 : 1> dscore;  // transposed; dk and dv at the end
    SavedAccumulators<block, C::head_dim, kHeldQueries / block> dq;
  };
  static constexpr Traits traits = [] {
    Traits t = C::traits;
    t.prologues = 1;
    t.assisted = assisted;
    return t;
  }();

  static bool fits(const Args& a) {
    return a.template fits<C>() && (a.q.rows > 0 || a.k.rows == 0) && a.chunk() > 0 &&
           a.so_far.rows >= a.seen_again();
  }
  // On a GPU for short rows only, where most keys are seen by one chunk: a program needs all of a
  // multiprocessor's shared memory, and its warps wait more than those of several smaller programs,
  // which pays while these have little to do. And only where all multiprocessors have a head in the
  // last round, which takes as long as any other.
  static bool suits(const Args& a, int cores) {
    if (!kOnGpu) return true;
    return traits.lowering == Lowering::kHopper && 2 * a.seen_again() <= a.k.rows &&
           a.k.batch >= 0.85 * round_up(a.k.batch, cores);
  }
  static Grid grid(const Args& a) { return {a.q.size() > 0 ? a.k.batch : 0}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    p.for_tiles(a.k.batch, [&](int kv_head) {
      for (Chunk now{0}; now.q0 < a.q.rows; now.q0 += a.chunk()) {
        now.q1 = min_of(now.q0 + a.chunk(), a.q.rows);
        now.keys = a.seen_by(now.q1);
        for (int c0 = 0; c0 < now.keys; c0 += C::keys) run_keys(p, a, s, kv_head, now, c0);
      }
    });
  }

 private:
  struct Chunk {
    int q0, q1 = 0, keys = 0;  // its queries, and the keys they see
  };

  // One block of keys and all queries of a chunk that see it.
  template <class P>
  CRIA_FN static void run_keys(P& p, const Args& a, Shared& s, int kv_head, const Chunk& now,
                               int c0) {
    constexpr int M = C::queries, N = C::keys;
    const int group = a.group();
    const int first = a.causal ? max_of(now.q0, max_of(c0 - a.past(), 0) / block * block) : now.q0;
    const int blocks = ceil_div(now.q1 - first, block), per_head = blocks * parts;
    const float to_log2 = a.scale * kLog2E;

    p.fetch(s.k[0], a.k, kv_head, c0, 0);
    p.fetch(s.v[0], a.v, kv_head, c0, 0);
    p.pipeline(
        stages<C::stages>, per_head * group,
        [&](int j, int stage) {
          const int head = kv_head * group + j / per_head, r0 = first + j % per_head * M;
          p.fetch(s.q[stage], a.q, head, r0, 0);
          p.fetch(s.dout[stage], a.dout, head, r0, 0);
        },
        [&](auto& p, auto& steps) {
          if (c0 == 0) write_delta(p, a, kv_head, now);
          auto dk = p.accumulator(shape<N, C::head_dim>), dv = p.accumulator(shape<N, C::head_dim>);
          auto weight = p.accumulator(shape<N, M>), dscore = p.accumulator(shape<N, M>);
          if (c0 < a.seen_by(now.q0)) {
            dk = p.load(layout_of(dk), a.so_far, c0, 0, kv_head);
            dv = p.load(layout_of(dv), a.so_far, c0, 0, a.k.batch + kv_head);
          }
          int h = 0, r0 = first;  // the step's head of the group, and its first query
          auto per_query = [&](const Tensor<const float>& x) {
            auto query = p.arange(shape<M>) + r0;
            const int head = kv_head * group + h, inside = h < group ? a.q.rows : 0;
            return r0 + M <= inside
                       ? p.keep(p.load(cols_of(weight), x.row(head), query))
                       : p.keep(p.load(cols_of(weight), x.row(head), query, query < inside));
          };
          auto lse = per_query(a.lse), delta = per_query(a.delta);
          // Part of a block of queries; after the last one dscore of all is there.
          auto step = [&](auto part) {
            return [&, part](int, int stage) {
              p.dot(weight, s.k[0], trans(s.q[stage]), overwrite);
              p.dot(dscore, s.v[0], trans(s.dout[stage]), overwrite);
              p.dot_wait(pending<1>, weight);
              update(weight, WeightOfScore{to_log2}, lse);
              const int last = a.causal ? r0 + a.past() : a.k.rows - 1;  // key that query r0 sees
              if (last < c0 + N - 1)
                weight = p.where(
                    row(p.arange(shape<M>)) * a.causal + last >= column(p.arange(shape<N>) + c0),
                    weight, 0.f);
              r0 += M;
              if (r0 == first + per_head * M) ++h, r0 = first;
              lse = per_query(a.lse);  // of the step to come
              auto rounded = p.cast(type<T>, weight);
              p.dot(dv, rounded, s.dout[stage]);
              p.dot_wait(pending<1>, dscore);
              update(dscore, GradientOfScore{}, delta, weight);
              auto rounded_dscore = p.cast(type<T>, dscore);
              p.dot(dk, rounded_dscore, s.q[stage]);
              p.write(s.dscore[steps.hand()], rounded_dscore, part * M);
              if constexpr (part == parts - 1) steps.hand_over();
              delta = per_query(a.delta);
              p.dot_wait(dv, dk);
            };
          };
          p.fetch_wait();
          p.sync();  // what was stored through dscore has left it
          for (int i = 0; i < blocks * group; ++i) {
            steps.one(step(index<0>));
            if constexpr (parts > 1) steps.one(step(index<1>));
          }
          p.fetch_done();
          steps.take_back();
          if (now.q1 < a.q.rows) {
            p.store(a.so_far, dk, c0, 0, kv_head);
            p.store(a.so_far, dv, c0, 0, a.k.batch + kv_head);
          } else {
            dk *= a.scale;
            a.template turn_back<C>(p, dk, c0);
            static_assert(block == C::head_dim, "a dscore is as large as dk");
            p.store_tile(a.dk, kv_head, c0, 0, dk, s.dscore[0]);
            p.store_tile(a.dv, kv_head, c0, 0, dv, s.dscore[assisted]);
          }
        },
        blocks * group,
        [&](auto& p, int i, int hand) {
          const int h = i / blocks, r0 = first + i % blocks * block;
          const auto place = s.dq[(h * a.chunk() + r0 - now.q0) / block];
          auto dq = p.accumulator(shape<block, C::head_dim>);
          if (c0 > 0) p.restore(dq, place);
          p.dot(dq, trans(s.dscore[hand]), s.k[0]);
          p.dot_wait(dq);
          if (i == blocks * group - 1) p.fetch_done();
          p.hand_back();
          p.sync();  // all have taken theirs, and what was stored through a place has left it
          if (c0 + N < a.seen_by(r0 + block)) {
            p.save(place, dq);
          } else {
            dq *= a.scale;
            a.template turn_back<C>(p, dq, a.past() + r0);
            p.store_tile(a.dq, kv_head * group + h, r0, 0, dq, place.as(type<T>));
          }
        });
  }

  template <class P>
  CRIA_FN static void write_delta(P& p, const Args& a, int kv_head, const Chunk& now) {
    constexpr int rows = 2 * C::keys;  // in flight at a time
    for (int head = kv_head * a.group(); head < (kv_head + 1) * a.group(); ++head)
      for (int r0 = now.q0; r0 < now.q1; r0 += rows) {
        auto delta = p.sum(p.load(a.o, shape<rows, C::head_dim>, r0, 0, head) *
                               p.load(a.dout, shape<rows, C::head_dim>, r0, 0, head),
                           axis<1>);
        p.store(a.delta.row(head), column(p.arange(shape<rows>) + r0) + row(p.arange(shape<1>)),
                delta, Mask{now.q1 - r0, 1});
      }
    p.sync();
  }
};

template <class T>
struct AttentionBackwardQkvSpace {
  template <Lowering Lower, int Keys>
  using Config = AttentionBackwardConfig<Lower, 64, Keys, 64, 2, 2 * Keys, 1, false,
                                         DotPrecision::kFp32, true>;
  using type = KernelSpace<AttentionBackwardQkv, T, Config<Lowering::kHopper, 128>,
                           Config<Lowering::kAmpere, 64>>;
};
template <>
struct AttentionBackwardQkvSpace<float> {
  template <DotPrecision Dot>
  using Ampere =
      AttentionBackwardConfig<Lowering::kAmpere, 32, 64, 64, 2, 128, 1, false, Dot, true>;
  using type = KernelSpace<AttentionBackwardQkv, float, Ampere<DotPrecision::kFp32>,
                           Ampere<DotPrecision::kTf32>>;
};

template <class T>
using AttentionBackwardQkvKernels = KernelList<typename AttentionBackwardQkvSpace<T>::type>;

}  // namespace cria::kernels
