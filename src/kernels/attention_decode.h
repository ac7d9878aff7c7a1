// Attention of one new position per sequence over the keys and values kept so far:
//   o = softmax(scale q kᵀ) v per head, over the first `length` keys
// A program walks over the keys in blocks. Row i of a block is an online softmax of its own, over
// keys i, i + block, ...: nothing passes between rows before the end. Heads that share keys and
// values may share the reading of them.
#pragma once

#include "kernels/list.h"
#include "kernels/unrolled.h"

namespace cria::kernels {

// Keys per step; HeadDim is the padded width of a head; Heads that share a reading.
template <int Keys, int HeadDim, int Heads, int Threads>
struct AttentionDecodeConfig {
  static constexpr int keys = Keys, head_dim = HeadDim, heads = Heads, threads = Threads;
  static std::string name() {
    return "keys" + std::to_string(keys) + "_head" + std::to_string(head_dim) + "_sharing" +
           std::to_string(heads) + "_threads" + std::to_string(threads);
  }
};

template <class T>
struct AttentionDecodeArgs {
  using Element = T;
  static constexpr const char* kernel = "attention_decode";
  Tensor<const T> q;  // [B * H, 1, K]
  Tensor<const T> k;  // [B * G, S, K], H a multiple of G
  Tensor<const T> v;  // [B * G, S, K]
  Tensor<T> o;        // [B * H, 1, K]
  float scale = 1;
  int length = 0;  // keys that count, 1 ... S

  template <class V>
  constexpr void operands(V&& visit) {
    visit("q", q), visit("k", k), visit("v", v), visit("o", o);
  }
  Dims dims() const {
    return {{"heads", q.batch}, {"kv_heads", k.batch}, {"keys", length}, {"head_dim", q.cols}};
  }
  Cost cost() const {
    if (o.size() == 0) return {};
    const double kept = double(k.batch) * length * k.cols;
    return {.flops = double(q.batch) * length * (4.0 * q.cols + 5),
            .bytes_read = double(q.bytes()) + 2 * kept * sizeof(T),
            .bytes_written = double(o.bytes())};
  }
};

template <class T, class C>
struct AttentionDecode {
  using Element = T;
  using Config = C;
  using Args = AttentionDecodeArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static constexpr float kMasked = -1e30f;  // finite: rows without any key stay NaN-free
  static bool fits(const Args& a) {
    return a.q.cols <= C::head_dim && (a.q.cols > C::head_dim / 2 || C::head_dim == 64) &&
           (C::heads == 1 || a.q.batch > a.k.batch);
  }
  static Grid grid(const Args& a) {
    if (a.o.size() == 0) return {0};
    return {ceil_div(a.q.batch / a.k.batch, C::heads), a.k.batch};
  }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int sharing = a.q.batch / a.k.batch, kv = p.program_id(1);
    const int begin = p.program_id(0) * C::heads, head = kv * sharing + begin;
    const int heads = min_of(sharing - begin, C::heads), n = a.q.cols;
    auto i = column(p.arange(shape<C::keys>));
    auto d = p.arange(shape<C::head_dim>);
    auto j = row(d);

    using Block = decltype(p.zeros(shape<C::keys, C::head_dim>));
    const Block zeros = p.zeros(shape<C::keys, C::head_dim>);
    using Rows = decltype(p.full_rows(zeros, 0.f));
    Block acc[C::heads];
    Rows top[C::heads], total[C::heads];
    unrolled<C::heads>([&](int h) {
      acc[h] = zeros;
      top[h] = p.full_rows(zeros, kMasked);
      total[h] = p.full_rows(zeros, 0.f);
    });
    for (int start = 0; start < a.length; start += C::keys) {
      auto key = i + start;
      const Mask inside = key < a.length && j < n;
      auto k = p.load_packed(a.k.matrix(kv), key * a.k.ld + j, inside);
      auto v = p.load_packed(a.v.matrix(kv), key * a.v.ld + j, inside);
      unrolled<C::heads>([&](int h) {
        if (h >= heads) return;
        auto q = p.load(cols_of(k), a.q.matrix(head + h), d, d < n);
        auto score = p.where(key < a.length, p.sum(k * q, axis<1>) * a.scale, kMasked);
        auto higher = p.keep(max(top[h], score));
        auto shrink = p.keep(exp(top[h] - higher)), weight = p.keep(exp(score - higher));
        top[h] = higher;
        total[h] = total[h] * shrink + weight;
        update(
            acc[h], [](float o, float f, float v, float w) { return o * f + v * w; }, shrink, v,
            weight);
      });
    }
    unrolled<C::heads>([&](int h) {
      if (h >= heads) return;
      auto share = exp(top[h] - p.max(top[h]));  // of each row of the block
      auto weights = p.full(shape<C::keys, C::head_dim>, 1.f) * (total[h] * share);
      p.store(a.o, p.sum(acc[h] * share, axis<0>) / p.sum(weights, axis<0>), 0, 0, head + h);
    });
  }
};

// Few heads leave most of a GPU idle, so 16-bit types do not share first.
template <class T>
struct AttentionDecodeSpace {
  template <int Keys, int HeadDim, int Heads, int Threads>
  using Config = AttentionDecodeConfig<Keys, HeadDim, Heads, Threads>;
  using type =
      KernelSpace<AttentionDecode, T, Config<128, 64, 1, 256>, Config<64, 128, 1, 256>,
                  Config<32, 256, 1, 256>, Config<64, 64, 4, 256>, Config<32, 128, 4, 256>>;
};
template <>
struct AttentionDecodeSpace<float> {
  template <int Keys, int HeadDim, int Heads>
  using Config = AttentionDecodeConfig<Keys, HeadDim, Heads, 128>;
  using type = KernelSpace<AttentionDecode, float, Config<32, 64, 4>, Config<16, 128, 4>,
                           Config<32, 64, 1>, Config<16, 128, 1>, Config<8, 256, 1>>;
};

template <class T>
using AttentionDecodeKernels = KernelList<typename AttentionDecodeSpace<T>::type>;

}  // namespace cria::kernels
