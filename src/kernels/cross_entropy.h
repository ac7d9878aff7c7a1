// Cross-entropy of each row's logits x against its target t, and its gradient in place of the
// logits:
//   loss = log sum exp(x) - x[t]
//   dx = (softmax(x) - onehot(t)) scale
// A row that fits stays in registers, 16-bit elements packed, and is read once. A wider one is
// walked twice.
#pragma once

#include "kernels/softmax.h"

namespace cria::kernels {

template <class T>
struct CrossEntropyArgs {
  using Element = T;
  static constexpr const char* kernel = "cross_entropy";
  Tensor<T> logits;               // [R, V], becomes dlogits
  Tensor<const int32_t> targets;  // [R], each in 0 ... V - 1
  Tensor<float> loss;             // [R, 1]
  float scale = 1;                // of the gradient
  bool gradient = true;           // false: the logits stay

  template <class V>
  constexpr void operands(V&& visit) {
    visit("logits", logits), visit("targets", targets, element_wise);
    visit("loss", loss, element_wise);
  }
  Dims dims() const { return {{"rows", logits.rows}, {"cols", logits.cols}}; }
  Cost cost() const {
    if (logits.size() == 0) return {};
    return {.flops = (gradient ? 6.0 : 3.0) * logits.size(),
            .bytes_read = double(logits.bytes() + targets.bytes()),
            .bytes_written = double((gradient ? logits.bytes() : 0) + loss.bytes())};
  }
};

template <class T, class C>
struct CrossEntropy {
  using Element = T;
  using Config = C;
  using Args = CrossEntropyArgs<T>;
  static constexpr Traits traits = C::traits;
  static bool fits(const Args& a) { return C::fits(a.logits.cols); }
  static Grid grid(const Args& a) { return row_grid<C>(a.logits); }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int r = p.program_id(0), n = a.logits.cols, target = p.load(a.targets.data + r);
    T* logits = a.logits.row(r);
    const float aim = p.load(logits + target);
    const auto block = [&](int start) {
      auto j = p.arange(shape<C::cols>) + start;
      return p.load_packed(logits, j, j < n, kNothing);
    };
    const auto store_loss = [&](RowExponentials row) {
      p.store(a.loss.row(r), (row.top - aim) + log(row.total));
    };
    const auto store_gradient = [&](RowExponentials row, const auto& x, int start) {
      auto j = p.arange(shape<C::cols>) + start;
      const float top = row.top, share = a.scale / row.total;
      p.store_mapped(
          logits, j, [=](float x) { return exp(x - top) * share; }, x, j < n);
    };
    const auto store_target = [&](RowExponentials row) {
      p.sync();  // after the store that the above made there
      p.store(logits + target, (exp(aim - row.top) / row.total - 1.f) * a.scale);
    };
    if (n <= C::cols) {
      auto x = block(0);
      const float top = p.max(x);
      const RowExponentials row{top, p.sum(exp(x - top))};
      store_loss(row);
      if (!a.gradient) return;
      store_gradient(row, x, 0);
      store_target(row);
    } else if constexpr (C::walks) {
      const RowExponentials row = walk_exponentials<C>(p, n, block);
      store_loss(row);
      if (!a.gradient) return;
      for (int start = 0; start < n; start += C::cols) store_gradient(row, block(start), start);
      store_target(row);
    }
  }
};

// The widest row of 16-bit elements takes half of a multiprocessor's registers, so that one program
// computes while the other loads.
template <class T>
struct CrossEntropySpace {
  using type = KernelSpace<CrossEntropy, T, RowConfig<1, 2048, 128>, RowConfig<1, 8192, 256>,
                           RowConfig<1, (sizeof(T) == 2 ? 32768 : 16384), 512, false, 2>,
                           RowConfig<1, 8192, 512, true, 2>>;
};

template <class T>
using CrossEntropyKernels = KernelList<typename CrossEntropySpace<T>::type>;

}  // namespace cria::kernels
