// Flash attention, forward: o = softmax(scale q kᵀ) v per head, by blocks of keys with an online
// softmax; the score matrix never exists. Grouped heads share k and v; causal rows see keys up to
// their own place, counted from the end. lse = log sum exp of each row's scores is kept for the
// backward pass.
//
// Order of work: the product q k[j]ᵀ and the product p[j-1] v[j-1] are in flight together, and the
// softmax of step j runs under the latter. Step j of the pipeline therefore holds k[j] and v[j-1].
#pragma once

#include "kernels/config.h"
#include "kernels/list.h"

namespace cria::kernels {

inline constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

// Queries x keys per step; HeadDim is the padded width of a head. Persistent: a program computes
// one block after the other, and what stays of the next one comes early.
template <Lowering Lower, int Queries, int Keys, int HeadDim, int StageCount, int ThreadCount,
          int MinBlocks = 1, DotPrecision Dot = DotPrecision::kFp32, bool Persistent = false>
struct AttentionConfig {
  static constexpr int queries = Queries, keys = Keys, head_dim = HeadDim, stages = StageCount;
  static constexpr int prologues = Persistent ? 2 : 1;
  static constexpr Traits traits{.threads = ThreadCount,
                                 .min_blocks = MinBlocks,
                                 .lowering = Lower,
                                 .prologues = prologues,
                                 .persistent = Persistent,
                                 .dot = Dot};
  static std::string name() {
    return std::string(Lower == Lowering::kHopper ? "hopper" : "ampere") + "_" +
           std::to_string(queries) + "x" + std::to_string(keys) + "_head" +
           std::to_string(head_dim) + "_stages" + std::to_string(stages) +
           (MinBlocks > 1 ? "_resident" + std::to_string(MinBlocks) : "") +
           (Persistent ? "_persistent" : "") + (Dot == DotPrecision::kTf32 ? "_tf32" : "");
  }
};

template <class T>
struct AttentionForwardArgs {
  using Element = T;
  static constexpr const char* kernel = "attention_forward";
  Tensor<const T> q;       // [B * H, T, K]
  Tensor<const T> k;       // [B * G, S, K], H a multiple of G
  Tensor<const T> v;       // [B * G, S, K]
  Tensor<T> o;             // [B * H, T, K]
  Tensor<float> lse = {};  // [B * H, T]; not written when data is null
  float scale = 1;
  bool causal = true;                            // needs S >= T; without, any S > 0 will do
  DotPrecision precision = DotPrecision::kFp32;  // of fp32 operands

  template <class V>
  constexpr void operands(V&& visit) {
    visit("q", q), visit("k", k), visit("v", v), visit("o", o);
    visit("lse", lse, element_wise);
  }
  Dims dims() const {
    return {{"heads", q.batch},
            {"kv_heads", k.batch},
            {"queries", q.rows},
            {"keys", k.rows},
            {"head_dim", q.cols},
            {"causal", causal},
            {"tf32", precision == DotPrecision::kTf32}};
  }
  constexpr int least_keys() const { return causal ? q.rows : min_of(q.rows, 1); }
  // Scores that count: all, or those on and below the diagonal.
  double scores() const {
    const double t = q.rows, s = k.rows;
    return q.batch * (causal ? t * (s - t) + t * (t + 1) / 2 : t * s);
  }
  Cost cost() const {
    if (o.size() == 0) return {};
    return {.flops = scores() * (4.0 * q.cols + 5),
            .bytes_read = double(q.bytes() + k.bytes() + v.bytes()),
            .bytes_written = double(o.bytes() + lse.bytes())};
  }
};

template <class T, class C>
struct AttentionForward {
  using Element = T;
  using Config = C;
  using Args = AttentionForwardArgs<T>;
  struct Shared {
    SharedTile<T, C::queries, C::head_dim, C::prologues> q;  // holds o at the end
    SharedTile<T, C::keys, C::head_dim, C::stages> k, v;
  };
  static constexpr Traits traits = C::traits;
  static constexpr float kMasked = -1e30f;  // finite, so that rows without any key stay NaN-free

  // Every query must see a key: the pipeline's first step takes a block of them for granted.
  static bool fits(const Args& a) {
    constexpr int narrower = C::head_dim > 64 ? C::head_dim / 2 : 0;
    return a.q.cols <= C::head_dim && a.q.cols > narrower && a.k.rows >= a.least_keys() &&
           multiplies_in<T, C>(a.precision);
  }
  // Persistent programs touch the keys of all heads at a time, which a cache must hold, and need
  // several blocks each to be worth it.
  static bool suits(const Args& a, int cores) {
    constexpr int64_t in_cache = int64_t{32} << 20;
    return !traits.persistent || (a.k.bytes() + a.v.bytes() <= in_cache &&
                                  all_blocks(a) >= int64_t{3} * cores * traits.min_blocks);
  }
  static Grid grid(const Args& a) {
    if (a.q.cols == 0) return {0};
    return traits.persistent ? Grid{all_blocks(a)} : Grid{blocks_of(a), a.q.batch};
  }

  // Blocks in order of falling work, of all heads. Persistent programs are dealt theirs forth and
  // back, so that all have as much to do; else the blocks of a head, which share keys, follow each
  // other.
  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    if constexpr (traits.persistent) {
      const int programs = p.num_programs(0), heads = a.q.batch, all = heads * blocks_of(a);
      int turn = 0;
      p.for_tiles(round_up(all, programs), [&](int t) {
        const int round = t / programs;
        const int i = round % 2 == 0 ? t : (2 * round + 1) * programs - 1 - t;
        if (i < all) run_block(p, a, s, i % heads, i / heads, turn++ % C::prologues);
      });
    } else {
      run_block(p, a, s, p.program_id(1), p.program_id(0), 0);
    }
  }

 private:
  static constexpr int blocks_of(const Args& a) { return ceil_div(a.q.rows, C::queries); }
  static constexpr int64_t all_blocks(const Args& a) { return int64_t{a.q.batch} * blocks_of(a); }

  template <class P>
  CRIA_FN static void run_block(P& p, const Args& a, Shared& s, int head, int block, int slot) {
    constexpr int M = C::queries, N = C::keys;
    const int kv_head = head / (a.q.batch / a.k.batch);
    const int r0 = (blocks_of(a) - 1 - block) * M;  // longest rows first
    const int past = a.k.rows - a.q.rows;           // keys before the first query's own
    const int visible = a.causal ? min_of(r0 + M + past, a.k.rows) : a.k.rows;
    const int first_last = a.causal ? r0 + past : a.k.rows - 1;  // last key that query r0 sees
    const int n = ceil_div(visible, N);
    const float to_log2 = a.scale * kLog2E;

    p.fetch(s.q[slot], a.q, head, r0, 0);
    p.pipeline(
        stages<C::stages>, n + 1,
        [&](int j, int stage) {
          if (j < n) p.fetch(s.k[stage], a.k, kv_head, j * N, 0);
          if (j > 0) p.fetch(s.v[stage], a.v, kv_head, (j - 1) * N, 0);
        },
        [&](auto& p, auto& steps) {
          auto acc = p.accumulator(shape<M, C::head_dim>);
          auto score = p.accumulator(shape<M, N>);
          auto top = p.full_rows(acc, kMasked);  // running maximum, in log2 units
          auto total = p.full_rows(acc, 0.f);    // running sum of exponentials, one part per thread
          auto shrink = total;         // what the last step's new maximum scales the past by
          auto softmax = [&](int j) {  // score -> exp2(score - top)
            if (j * N + N - 1 > first_last) {
              auto last = column(p.arange(shape<M>)) * a.causal + first_last;
              score = p.where(last >= row(p.arange(shape<N>) + j * N), score, kMasked);
            }
            auto higher = map([=](float t, float x) { return max(t, x * to_log2); }, top,
                              p.max(score, axis<1>));
            update(
                score, [=](float x, float t) { return exp2(x * to_log2 - t); }, higher);
            shrink = map([](float t, float h) { return exp2(t - h); }, top, higher);
            top = higher;
            total = map([](float t, float f, float x) { return t * f + x; }, total, shrink,
                        p.partial_sum(score, axis<1>));
          };
          p.fetch_wait();
          steps(1, [&](int j, int stage) {
            p.dot(score, s.q[slot], trans(s.k[stage]), overwrite);
            p.dot_wait(score);
            softmax(j);
          });
          auto weights = p.cast(type<T>, score);
          steps(n - 1, [&](int j, int stage) {
            p.dot(score, s.q[slot], trans(s.k[stage]), overwrite);
            p.dot(acc, weights, s.v[stage]);
            p.dot_wait(pending<1>, score);
            softmax(j);
            p.dot_wait(acc);
            acc *= shrink;
            weights = p.cast(type<T>, score);
          });
          steps(1, [&](int, int stage) {
            p.dot(acc, weights, s.v[stage]);
            p.dot_wait(acc);
          });
          p.combine(total);
          acc *= map([](float t) { return 1.f / t; }, total);
          p.store_tile(a.o, head, r0, 0, acc, s.q[slot]);
          if (a.lse.data) {
            auto out = column(p.arange(shape<M>) + r0) + row(p.arange(shape<1>));
            p.store(a.lse.row(head), out, (top + log2(total)) * kLn2, Mask{a.q.rows - r0, 1});
          }
        });
  }
};

// Heads of 64 and 128 have tiles of their own; wider ones share those of 256.
template <class T>
struct AttentionSpace {
  template <int M, int N, int D, int S, int Threads, int Resident = 1, bool Persistent = false>
  using Hopper = AttentionConfig<Lowering::kHopper, M, N, D, S, Threads, Resident,
                                 DotPrecision::kFp32, Persistent>;
  template <int M, int N, int D, int S>
  using Ampere = AttentionConfig<Lowering::kAmpere, M, N, D, S, M * 2>;
  using type = KernelSpace<AttentionForward, T, Hopper<64, 64, 64, 2, 128, 3, true>,
                           Hopper<64, 64, 64, 2, 128, 3>, Hopper<64, 128, 64, 2, 128, 2>,
                           Hopper<128, 128, 64, 2, 256>, Hopper<128, 128, 128, 2, 256>,
                           Hopper<128, 64, 128, 2, 256>, Hopper<128, 64, 256, 2, 256>,
                           Ampere<64, 64, 64, 2>, Ampere<64, 64, 128, 2>, Ampere<64, 32, 256, 2>>;
};
template <>
struct AttentionSpace<float> {
  template <int M, int N, int D, DotPrecision Dot = DotPrecision::kFp32>
  using Ampere = AttentionConfig<Lowering::kAmpere, M, N, D, 2, M * 2, 1, Dot>;
  template <int M, int N, int D>
  using Tf32 = Ampere<M, N, D, DotPrecision::kTf32>;
  using type =
      KernelSpace<AttentionForward, float, Ampere<64, 64, 64>, Ampere<64, 32, 128>,
                  Tf32<64, 64, 64>, Tf32<64, 32, 128>, Tf32<64, 32, 256>, Ampere<64, 32, 256>>;
};

template <class T>
using AttentionKernels = KernelList<typename AttentionSpace<T>::type>;

}  // namespace cria::kernels
