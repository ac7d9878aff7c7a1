// Attention of one new position per sequence over the keys and values kept so far:
//   o = softmax(scale q kᵀ) v per head, over the first `length` keys
// Heads that share keys and values are the rows of one matrix. The keys are cut into parts, a
// program each: a part leaves its own result and the logarithm of its sum of exponentials, by which
// attention_combine weighs it against the others. A single part writes o itself.
// The new position may be in device memory: then one launch, kept in a graph, fits all lengths. Its
// grid is that of the longest, and programs without keys return at once.
#pragma once

#include "kernels/attention.h"
#include "kernels/attention_combine.h"

namespace cria::kernels {

template <class T>
struct AttentionDecodeArgs {
  using Element = T;
  static constexpr const char* kernel = "attention_decode";
  Tensor<const T> q;         // [B * G, R, K], for R heads that share keys
  Tensor<const T> k;         // [B * G, S, K]
  Tensor<const T> v;         // [B * G, S, K]
  Tensor<T> o;               // [B * G, R, K]
  Tensor<float> parts = {};  // [B * G, P * R, K], for up to P parts (shares.h); one when null
  Tensor<float> logs = {};   // [B * G, P * R]
  float scale = 1;
  int length = 0;  // keys that count, 1 ... S; at most, where there is a position
  Tensor<const int32_t> position = {};  // [1], below length: keys 0 ... position count

  template <class V>
  constexpr void operands(V&& visit) {
    visit("q", q), visit("k", k), visit("v", v), visit("o", o);
    visit("parts", parts), visit("logs", logs, element_wise);
    visit("position", position, element_wise);
  }
  Dims dims() const {
    return {
        {"heads", q.batch * q.rows}, {"kv_heads", k.batch}, {"keys", length}, {"head_dim", q.cols}};
  }
  static constexpr bool costs_at_most = true;  // where there is a position
  Cost cost() const {
    if (o.size() == 0 || length < 1) return {};
    const double rows = double(q.batch) * q.rows, kept = double(k.batch) * length * k.cols;
    const int n = part_count();
    return {.flops = rows * length * (4.0 * q.cols + 5),
            .bytes_read = double(q.bytes() + position.bytes()) + 2 * kept * sizeof(T),
            .bytes_written = n == 1 ? double(o.bytes()) : sizeof(float) * rows * n * (q.cols + 1)};
  }

  constexpr KeyParts cut() const { return {parts.data ? parts.rows / q.rows : 1}; }
  // At most, where there is a position.
  constexpr int part_count() const {
    return position.data ? cut().bound(length) : cut().count(length);
  }
  // To be launched next, if there may be several parts.
  AttentionCombineArgs<T> combine() const { return {parts, logs, o, length, position}; }
};

// Keys per step; HeadDim is the padded width of a head; Heads per program, 1 or 16.
template <int Keys, int HeadDim, int Heads, int Threads>
struct AttentionDecodeConfig {
  static constexpr int keys = Keys, head_dim = HeadDim, heads = Heads, threads = Threads;
  static std::string name() {
    return "keys" + std::to_string(keys) + "_head" + std::to_string(head_dim) + "_sharing" +
           std::to_string(heads) + "_threads" + std::to_string(threads);
  }
};

// What both ways to do it have in common.
template <class T, class C>
struct AttentionDecodeBase {
  using Element = T;
  using Config = C;
  using Args = AttentionDecodeArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static constexpr float kMasked = -1e30f;  // finite: rows without any key stay NaN-free
  static bool fits(const Args& a) {
    return a.q.cols <= C::head_dim && (a.q.cols > C::head_dim / 2 || C::head_dim == 64) &&
           a.length >= 1 && a.length <= a.k.rows;
  }
  // Few heads are better off alone than padded to a tensor core's tile.
  static bool suits(const Args& a, int) { return (a.q.rows > 2) == (C::heads > 1); }
  static Grid grid(const Args& a) {
    if (a.o.size() == 0) return {0};
    return {a.part_count(), ceil_div(a.q.rows, C::heads), a.k.batch};
  }
};

// One head: row i of a block of keys is an online softmax of its own, over keys i, i + block, ...,
// and nothing passes between rows before the end.
template <class T, class C>
struct AttentionDecodeOne : AttentionDecodeBase<T, C> {
  using AttentionDecodeBase<T, C>::kMasked;

  template <class P>
  CRIA_FN static void run(P& p, const AttentionDecodeArgs<T>& a) {
    const int part = p.program_id(0), head = p.program_id(1), kv = p.program_id(2), n = a.q.cols;
    const int keys = keys_up_to(p, a.position, a.length), each = a.cut().keys_per_part(keys);
    const int begin = part * each, end = min_of(begin + each, keys);
    if (begin >= end) return;
    auto i = column(p.arange(shape<C::keys>));
    auto d = p.arange(shape<C::head_dim>);
    auto j = row(d);
    auto acc = p.zeros(shape<C::keys, C::head_dim>);
    auto top = p.full_rows(acc, kMasked), total = p.full_rows(acc, 0.f);
    for (int start = begin; start < end; start += C::keys) {
      auto key = i + start;
      const Mask inside = key < end && j < n;
      auto k = p.load_packed(a.k.matrix(kv), key * a.k.ld + j, inside);
      auto v = p.load_packed(a.v.matrix(kv), key * a.v.ld + j, inside);
      auto q = p.load(cols_of(k), a.q.at(kv, head, 0), d, d < n);
      auto score = p.where(key < end, p.sum(k * q, axis<1>) * a.scale, kMasked);
      auto higher = p.keep(max(top, score));
      auto shrink = p.keep(exp(top - higher)), weight = p.keep(exp(score - higher));
      top = higher;
      total = total * shrink + weight;
      update(
          acc, [](float o, float f, float v, float w) { return o * f + v * w; }, shrink, v, weight);
    }
    const float most = p.max(top);
    auto share = exp(top - most);  // of each row of the block
    auto weights = p.full(shape<C::keys, C::head_dim>, 1.f) * (total * share);
    auto sums = p.keep(p.sum(weights, axis<0>));
    auto o = p.keep(p.sum(acc * share, axis<0>) / sums);
    if (keys <= each) {
      p.store(a.o, o, head, 0, kv);
    } else {
      const int r = part * a.q.rows + head;
      p.store(a.parts, o, r, 0, kv);
      p.store(a.logs.row(kv) + r, d * 0, log(sums) + most, Mask{1, 1});
    }
  }
};

// Up to 16 heads: the rows of a tensor core's tile. Keys and values come in by a pipeline.
template <class T, class C>
struct AttentionDecodeGroup : AttentionDecodeBase<T, C> {
  using AttentionDecodeBase<T, C>::kMasked;
  static constexpr int kStages = 2;
  struct Shared {
    SharedTile<T, C::heads, C::head_dim> q;
    SharedTile<T, C::keys, C::head_dim, kStages> k, v;
  };

  template <class P>
  CRIA_FN static void run(P& p, const AttentionDecodeArgs<T>& a, Shared& s) {
    const int part = p.program_id(0), r0 = p.program_id(1) * C::heads, kv = p.program_id(2);
    const int keys = keys_up_to(p, a.position, a.length), each = a.cut().keys_per_part(keys);
    const int begin = part * each, end = min_of(begin + each, keys);
    if (begin >= end) return;
    const float to_log2 = a.scale * kLog2E;
    Tensor<const T> k = a.k, v = a.v;
    k.rows = v.rows = end;
    p.fetch(s.q[0], a.q, kv, r0, 0);
    p.pipeline(
        stages<kStages>, ceil_div(end - begin, C::keys),
        [&](int step, int stage) {
          p.fetch(s.k[stage], k, kv, begin + step * C::keys, 0);
          p.fetch(s.v[stage], v, kv, begin + step * C::keys, 0);
        },
        [&](auto& p, auto& steps) {
          auto acc = p.accumulator(shape<C::heads, C::head_dim>);
          auto score = p.accumulator(shape<C::heads, C::keys>);
          auto top = p.full_rows(acc, kMasked);  // running maximum, in log2 units
          auto total = p.full_rows(acc, 0.f);    // running sum, one part per thread
          p.fetch_wait();
          steps([&](int step, int stage) {
            p.dot(score, s.q[0], trans(s.k[stage]), overwrite);
            p.dot_wait(score);
            const int left = end - begin - step * C::keys;
            if (left < C::keys)
              score = p.where(row(p.arange(shape<C::keys>)) < left, score, kMasked);
            auto higher = map([=](float t, float x) { return max(t, x * to_log2); }, top,
                              p.max(score, axis<1>));
            update(
                score, [=](float x, float t) { return exp2(x * to_log2 - t); }, higher);
            auto shrink = map([](float t, float h) { return exp2(t - h); }, top, higher);
            top = higher;
            total = total * shrink + p.partial_sum(score, axis<1>);
            acc *= shrink;
            p.dot(acc, p.cast(type<T>, score), s.v[stage]);
            p.dot_wait(acc);
          });
          p.combine(total);
          acc *= map([](float t) { return 1.f / t; }, total);
          if (keys <= each) {
            p.store(a.o, acc, r0, 0, kv);
          } else {
            const int r = part * a.q.rows + r0, rows = a.q.rows - r0;
            auto i = column(p.arange(shape<C::heads>));
            auto j = row(p.arange(shape<C::head_dim>));
            p.store(a.parts.at(kv, r, 0), i * a.parts.ld + j, acc, i < rows && j < a.q.cols);
            p.store(a.logs.row(kv) + r, i + row(p.arange(shape<1>)), (top + log2(total)) * kLn2,
                    i < rows);
          }
        });
  }
};

template <class T, class C>
struct AttentionDecode
    : std::conditional_t<C::heads == 1, AttentionDecodeOne<T, C>, AttentionDecodeGroup<T, C>> {};

template <class T>
struct AttentionDecodeSpace {
  // 8 KiB of keys at a time, and as much of values.
  template <int HeadDim>
  using One = AttentionDecodeConfig<8192 / int(sizeof(T)) / HeadDim, HeadDim, 1, 128>;
  template <int Keys, int HeadDim>
  using Group = AttentionDecodeConfig<Keys, HeadDim, 16, 32>;
  using type = KernelSpace<AttentionDecode, T, One<64>, One<128>, One<256>, Group<64, 64>,
                           Group<32, 128>, Group<16, 256>>;
};

template <class T>
using AttentionDecodeKernels =
    KernelList<typename AttentionDecodeSpace<T>::type, AttentionCombineSpace<T>>;

}  // namespace cria::kernels
