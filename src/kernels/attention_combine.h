// Results of attention over parts of the keys, weighed against each other:
//   o = sum over parts of w part / sum of w,   w = exp(log - max log)
// where log is the logarithm of a part's sum of exponentials. See attention_decode.h.
#pragma once

#include "kernels/list.h"

namespace cria::kernels {

// How keys are cut: into at most so many parts, of which none is small.
struct KeyParts {
  static constexpr int kLeastKeys = 64;  // of a part
  int most = 1;

  constexpr int keys_per_part(int keys) const { return round_up(ceil_div(keys, most), kLeastKeys); }
  constexpr int count(int keys) const { return ceil_div(keys, keys_per_part(keys)); }
  // No fewer than any number of keys up to this one is cut into.
  constexpr int bound(int keys) const { return min_of(most, ceil_div(keys, kLeastKeys)); }
};

// The keys that count where they are as many as positions up to the newest, which a graph of
// launches finds in device memory; else the number beside it.
template <class P>
CRIA_FN int keys_up_to(P& p, const Tensor<const int32_t>& position, int length) {
  return position.data ? p.load(position.data) + 1 : length;
}

template <class T>
struct AttentionCombineArgs {
  using Element = T;
  static constexpr const char* kernel = "attention_combine";
  Tensor<const float> parts;  // [B * G, P * R, K]: R rows of part 0, R rows of part 1, ...
  Tensor<const float> logs;   // [B * G, P * R]
  Tensor<T> o;                // [B * G, R, K]; a single part has written it already
  int length = 1;             // keys that were cut, as in AttentionDecodeArgs
  Tensor<const int32_t> position = {};

  template <class V>
  constexpr void operands(V&& visit) {
    visit("parts", parts), visit("logs", logs, element_wise), visit("o", o);
    visit("position", position, element_wise);
  }
  Dims dims() const {
    return {{"heads", o.batch * o.rows}, {"parts", part_count()}, {"head_dim", o.cols}};
  }
  static constexpr bool costs_at_most = true;  // where there is a position
  Cost cost() const {
    if (o.size() == 0) return {};
    const double rows = double(o.batch) * o.rows * part_count();
    return {.flops = rows * (2.0 * o.cols + 5),
            .bytes_read = sizeof(float) * rows * (o.cols + 1) + double(position.bytes()),
            .bytes_written = double(o.bytes())};
  }

  constexpr KeyParts cut() const { return {parts.rows / o.rows}; }
  // At most, where there is a position.
  constexpr int part_count() const {
    return position.data ? cut().bound(length) : cut().count(length);
  }
};

// Parts at a time; HeadDim is the padded width of a head.
template <int Parts, int HeadDim>
struct AttentionCombineConfig {
  static constexpr int parts = Parts, head_dim = HeadDim;
  static std::string name() {
    return "parts" + std::to_string(parts) + "_head" + std::to_string(head_dim);
  }
};

template <class T, class C>
struct AttentionCombine {
  using Element = T;
  using Config = C;
  using Args = AttentionCombineArgs<T>;
  static constexpr int vec = 4;  // of the parts, whatever the type of o
  static constexpr Traits traits{.threads = 128};
  static bool fits(const Args& a) {
    return a.o.cols <= C::head_dim && (a.o.cols > C::head_dim / 2 || C::head_dim == 64);
  }
  static Grid grid(const Args& a) { return {a.o.cols > 0 ? a.o.rows : 0, a.o.batch}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int r = p.program_id(0), b = p.program_id(1), rows = a.o.rows;
    const int count = a.cut().count(keys_up_to(p, a.position, a.length));
    if (count == 1) return;
    const float* logs = a.logs.row(b) + r;
    float top = -kInfinity;
    for (int n = 0; n < count; n += 128) {
      auto part = p.arange(shape<128>) + n;
      top = max(top, p.max(p.load(logs, part * rows, part < count, -kInfinity)));
    }
    auto i = column(p.arange(shape<C::parts>));
    auto j = row(p.arange(shape<C::head_dim>));
    auto acc = p.zeros(shape<C::parts, C::head_dim>);
    auto total = p.full_rows(acc, 0.f);
    for (int n = 0; n < count; n += C::parts) {
      auto part = i + n;
      auto log = p.load(rows_of(acc), logs, part * rows + row(p.arange(shape<1>)), part < count,
                        -kInfinity);
      auto weight = p.keep(exp(log - top));
      auto x =
          p.load(a.parts.at(b, r, 0), part * (rows * a.parts.ld) + j, part < count && j < a.o.cols);
      update(
          acc, [](float o, float x, float w) { return o + x * w; }, x, weight);
      total += weight;
    }
    auto weights = p.full(shape<C::parts, C::head_dim>, 1.f) * total;
    p.store(a.o, p.sum(acc, axis<0>) / p.sum(weights, axis<0>), r, 0, b);
  }
};

template <class T>
using AttentionCombineSpace =
    KernelSpace<AttentionCombine, T, AttentionCombineConfig<32, 64>,
                AttentionCombineConfig<16, 128>, AttentionCombineConfig<8, 256>>;

}  // namespace cria::kernels
