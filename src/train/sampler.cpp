#include "train/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/format.h"

namespace cria {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TokenSampler::TokenSampler(const SamplerOptions& options) : options_(options), rng_(options.seed) {
  if (!(options.temperature >= 0)) fail_f("temperature {} must be 0 or more", options.temperature);
  if (options.top_k < 0) fail_f("top-k {} must be 0 (all tokens) or more", options.top_k);
  if (!(options.top_p > 0 && options.top_p <= 1))
    fail_f("top-p {} must be above 0 and at most 1", options.top_p);
}

int32_t TokenSampler::sample(std::span<const float> logits) {
  if (logits.empty()) fail("there are no logits to sample from");
  // -inf is a token that is never drawn; with NaN there is no order.
  const bool usable = std::ranges::all_of(logits, [](float x) { return x < kInfinity; });
  const auto best = std::ranges::max_element(logits);
  if (!usable || *best == -kInfinity)
    fail("the model's logits are not finite: its weights are broken or training has diverged");
  if (options_.temperature == 0) return static_cast<int32_t>(best - logits.begin());

  // Likeliest first; of equals the smaller token, so that the order is always the same.
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  auto likelier = [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  size_t kept = order.size();
  if (options_.top_k > 0) kept = std::min(kept, size_t(options_.top_k));
  if (kept < order.size())
    std::partial_sort(order.begin(), order.begin() + std::ptrdiff_t(kept), order.end(), likelier);
  else if (options_.top_p < 1)
    std::ranges::sort(order, likelier);

  std::vector<double> weights(kept);
  double total = 0;
  for (size_t i = 0; i < kept; ++i)
    total += weights[i] = std::exp((double(logits[order[i]]) - *best) / options_.temperature);
  if (options_.top_p < 1) {
    double sum = 0;
    size_t i = 0;
    while (i < kept && sum < options_.top_p * total) sum += weights[i++];
    kept = i;
    total = sum;
  }
  double mark = rng_.uniform() * total;
  for (size_t i = 0; i + 1 < kept; ++i)
    if ((mark -= weights[i]) < 0) return order[i];
  return order[kept - 1];
}

}  // namespace cria
