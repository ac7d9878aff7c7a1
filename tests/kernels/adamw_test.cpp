#include "kernels/adamw.h"

#include <cmath>

#include "kernels/harness.h"
#include "kernels/reduction.h"

namespace cria::test {
namespace {

using namespace kernels;

struct Hyper {
  double rate = 0.02, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0.1, max_norm = 1;
  int step = 3;
  std::vector<double> list() const {
    return {rate,
            beta1,
            beta2,
            eps,
            1 / (1 - std::pow(beta1, step)),
            1 / (1 - std::pow(beta2, step)),
            decay,
            max_norm};
  }
};

enum class Gradient { kTyped, kSummed };

// m, v, w as torch.optim.AdamW and torch.nn.utils.clip_grad_norm_ leave them.
template <class Case, class Weights>
void check(Case& t, AdamWArgs<ElementOf<Case>> args, Weights& weights, int n, int decayed,
           Gradient from, const Hyper& h) {
  const double grad_scale = 0.25;
  auto& m = t.fp32_inout("m", {n}, 0.1);
  auto& v = t.fp32_inout("v", {n}, 0);
  auto& grad = t.input("grad", {from == Gradient::kTyped ? n : 0});
  auto& sum = t.fp32_input("sum", {from == Gradient::kSummed ? n : 0});
  auto &hyper = t.fp32_input("hyper", {kAdamWHypers}), &norm2 = t.fp32_input("norm2", {1});
  const auto g = [&](int i) { return from == Gradient::kTyped ? grad(0, i) : sum(0, i); };
  double squares = 0;
  for (int i = 0; i < n; ++i) squares += g(i) * g(i), v.set(0, i, 0.01 * (1 + i % 7));
  const auto list = h.list();
  for (int i = 0; i < kAdamWHypers; ++i) hyper.set(0, i, list[i]);
  norm2.set(0, 0, squares);
  const double norm = std::sqrt(squares) * grad_scale;
  const double clip = h.max_norm > 0 ? std::min(1.0, h.max_norm / (norm + 1e-6)) : 1;
  for (int i = 0; i < n; ++i) {
    const double gi = g(i) * grad_scale * clip;
    const double mi = h.beta1 * m(0, i) + (1 - h.beta1) * gi;
    const double vi = h.beta2 * v(0, i) + (1 - h.beta2) * gi * gi;
    const double w = weights(0, i) * (i < decayed ? 1 - h.rate * h.decay : 1);
    const double root = std::sqrt(vi) / std::sqrt(1 - std::pow(h.beta2, h.step));
    m.want(0, i) = mi, v.want(0, i) = vi;
    weights.want(0, i) = w - h.rate / (1 - std::pow(h.beta1, h.step)) * mi / (root + h.eps);
  }
  m.tolerance = v.tolerance = {.length = 8, .norm = 0.1};
  weights.tolerance = {.length = 16, .norm = 1};
  args.m = m, args.v = v, args.hyper = hyper, args.norm2 = norm2;
  if (from == Gradient::kTyped) args.grad = grad;
  if (from == Gradient::kSummed) args.sum = sum;
  args.decayed = decayed, args.grad_scale = float(grad_scale);
  t.run(args);
}
template <class Case>
void check(Case& t, int n, int decayed, Gradient from = Gradient::kTyped, const Hyper& h = {}) {
  AdamWArgs<ElementOf<Case>> args{};
  if constexpr (std::is_same_v<ElementOf<Case>, bf16>) {
    auto [weights, rest] = t.split_inout("weights", {n});
    args.weights = weights, args.rest = rest;
    check(t, args, rest, n, decayed, from, h);
  } else if constexpr (std::is_same_v<ElementOf<Case>, float>) {
    auto& weights = t.fp32_inout("weights", {n});
    args.weights = weights;
    check(t, args, weights, n, decayed, from, h);
  }
}

// sizes: elements, those with weight decay
const Sizes<2> kSizes = {
    .small = {{0, 0}, {1, 0}, {1, 1}, {1023, 7}, {1024, 1024}, {1025, 1000}, {4099, 2050}},
    .large = {{100003, 70001}}};
const bool typed = kernel_test<2>(
    "AdamW", kSizes, [](auto& t, int n, int decayed) { check(t, n, decayed); }, kTrainingTypes);
const bool summed = kernel_test<2>(
    "AdamWSummed", kSizes,
    [](auto& t, int n, int decayed) { check(t, n, decayed, Gradient::kSummed); }, kTrainingTypes);
const bool first_step = kernel_test<2>(
    "AdamWFirstStep", {.small = {{1500, 300}}},
    [](auto& t, int n, int decayed) {
      check(t, n, decayed, Gradient::kTyped, {.max_norm = 0, .step = 1});
    },
    kTrainingTypes);
const bool unclipped = kernel_test<2>(
    "AdamWBelowMaxNorm", {.small = {{1500, 300}}},
    [](auto& t, int n, int decayed) { check(t, n, decayed, Gradient::kTyped, {.max_norm = 1e6}); },
    kTrainingTypes);

const bool accumulate = kernel_test<1>(
    "Accumulate", {.small = each({0, 1, 2047, 2048, 2049}), .large = each({100003})},
    [](auto& t, int n) {
      auto& x = t.input("x", {n});
      auto& sum = t.fp32_inout("sum", {n});
      for (int i = 0; i < n; ++i) sum.want(0, i) = x(0, i) + sum(0, i);
      sum.tolerance = {.norm = 8};
      t.run(AccumulateArgs<ElementOf<decltype(t)>>{.x = x, .sum = sum});
    },
    kTrainingTypes);

}  // namespace
}  // namespace cria::test
