// AdamW over all weights at once, which lie in one arena, those with weight decay first:
//   g = grad grad_scale min(1, max_norm / (|grad grad_scale| + 1e-6))
//   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g²
//   w -= lr (m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + decay w)
// 16-bit weights are what products read: together with the rest of their bits they are f32
// (high_half in base/dtype.h). What changes from step to step lies in memory, so that a recorded
// step can be replayed.
//   accumulate   sum = sum + x: gradients of several batches, in fp32
#pragma once

#include "kernels/config.h"
#include "kernels/list.h"

namespace cria::kernels {

// Of AdamWArgs::hyper.
enum AdamWHyper {
  kLearningRate,
  kBeta1,
  kBeta2,
  kEpsilon,
  kCorrection1,  // 1 / (1 - beta1^t)
  kCorrection2,  // 1 / (1 - beta2^t)
  kWeightDecay,
  kMaxNorm,  // 0: no clipping
  kAdamWHypers
};

template <class T>
struct AdamWArgs {
  using Element = T;
  static constexpr const char* kernel = "adamw";
  Tensor<T> weights;             // [N]
  Tensor<int16_t> rest = {};     // [N], of 16-bit weights; f32 has none
  Tensor<float> m;               // [N]
  Tensor<float> v;               // [N]
  Tensor<const T> grad = {};     // [N], unless sum is given
  Tensor<const float> sum = {};  // [N], gradients accumulated in fp32
  Tensor<const float> hyper;     // [kAdamWHypers]
  Tensor<const float> norm2;     // [1], sum of the squares of grad or sum
  int64_t decayed = 0;           // leading elements with weight decay
  float grad_scale = 1;

  template <class V>
  constexpr void operands(V&& visit) {
    visit("weights", weights), visit("rest", rest), visit("m", m), visit("v", v);
    visit("grad", grad), visit("sum", sum);
    visit("hyper", hyper, element_wise), visit("norm2", norm2, element_wise);
  }
  Dims dims() const { return {{"n", weights.cols}}; }
  Cost cost() const {
    if (weights.size() == 0) return {};
    const double state = double(weights.bytes() + rest.bytes() + m.bytes() + v.bytes());
    const double gradient = double(sum.data ? sum.bytes() : grad.bytes());
    return {.flops = 16.0 * weights.size(),
            .bytes_read = state + gradient + double(hyper.bytes() + norm2.bytes()),
            .bytes_written = state};
  }
};

template <class T, class C>
struct AdamW {
  using Element = T;
  using Config = C;
  using Args = AdamWArgs<T>;
  static constexpr int vec = 4;  // of the moments, whatever the type of the weights
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return {ceil_div(a.weights.cols, C::cols)}; }

  template <class P, class I>
  CRIA_FN static auto load_weights(P& p, const Args& a, I i, Mask inside) {
    if constexpr (sizeof(T) == 2)
      return p.load_split(a.weights.data, a.rest.data, i, inside);
    else
      return p.load(a.weights.data, i, inside);
  }
  template <class P, class I, class W>
  CRIA_FN static void store_weights(P& p, const Args& a, I i, const W& weights, Mask inside) {
    if constexpr (sizeof(T) == 2)
      p.store_split(a.weights.data, a.rest.data, i, weights, inside);
    else
      p.store(a.weights.data, i, weights, inside);
  }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const auto hyper = [&](AdamWHyper h) { return p.load(a.hyper.data + h); };
    const float rate = hyper(kLearningRate), beta1 = hyper(kBeta1), beta2 = hyper(kBeta2);
    const float eps = hyper(kEpsilon), decay = hyper(kWeightDecay), most = hyper(kMaxNorm);
    const float correction1 = hyper(kCorrection1), correction2 = hyper(kCorrection2);
    const float norm = sqrt(p.load(a.norm2.data)) * abs(a.grad_scale);
    const float scale = a.grad_scale * (most > 0 ? min(1.f, most / (norm + 1e-6f)) : 1.f);

    auto i = p.arange(shape<C::cols>) + int64_t{p.program_id(0)} * C::cols;
    auto inside = i < a.weights.cols;
    const auto step = [&](auto grad) {
      auto g = grad * scale;
      auto w = load_weights(p, a, i, inside);  // before any store: a GPU's loads overlap
      auto m = p.keep(p.load(a.m.data, i, inside) * beta1 + g * (1.f - beta1));
      auto v = p.keep(p.load(a.v.data, i, inside) * beta2 + g * g * (1.f - beta2));
      p.store(a.m.data, i, m, inside);
      p.store(a.v.data, i, v, inside);
      auto step = m * correction1 / (sqrt(v * correction2) + eps);
      auto weights = p.keep(w - (step + p.where(i < a.decayed, w, 0.f) * decay) * rate);
      store_weights(p, a, i, weights, inside);
    };
    if (a.sum.data)
      step(p.load(a.sum.data, i, inside));
    else
      step(p.load(a.grad.data, i, inside));
  }
};

template <class T>
struct AccumulateArgs {
  using Element = T;
  static constexpr const char* kernel = "accumulate";
  Tensor<const T> x;  // [N]
  Tensor<float> sum;  // [N]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("sum", sum);
  }
  Dims dims() const { return {{"n", x.cols}}; }
  Cost cost() const {
    return {.flops = double(x.size()),
            .bytes_read = double(x.bytes() + sum.bytes()),
            .bytes_written = double(sum.bytes())};
  }
};

template <class T, class C>
struct Accumulate {
  using Element = T;
  using Config = C;
  using Args = AccumulateArgs<T>;
  static constexpr int vec = 4;  // of the sums, whatever the type of x
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return {ceil_div(a.x.cols, C::cols)}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    auto i = p.arange(shape<C::cols>) + int64_t{p.program_id(0)} * C::cols;
    auto inside = i < a.x.cols;
    auto x = p.load(a.x.data, i, inside);
    p.store(a.sum.data, i, p.load(a.sum.data, i, inside) + x, inside);
  }
};

// Small blocks: a CPU computes on what is still in the nearest cache.
template <class T>
using AdamWKernels =
    KernelList<KernelSpace<AdamW, T, BlockConfig<256, 64>, BlockConfig<1024, 256>>,
               KernelSpace<Accumulate, T, BlockConfig<2048, 256>, BlockConfig<1024, 256>>>;

}  // namespace cria::kernels
