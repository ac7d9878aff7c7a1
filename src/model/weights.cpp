#include "model/weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/format.h"
#include "base/rng.h"
#include "kernels/rope.h"

namespace cria {

WeightMap::WeightMap(const ModelConfig& c) {
  check_config(c);
  add("model.embed_tokens.weight", c.vocab, c.dim);
  if (!c.tied) {
    align();
    add("lm_head.weight", c.vocab, c.dim);
  }
  auto layer = [](int i) { return "model.layers." + std::to_string(i) + "."; };
  for (int i = 0; i < c.layers; ++i) {
    align();
    add(layer(i) + "self_attn.q_proj.weight", c.query_width(), c.dim);
    add(layer(i) + "self_attn.k_proj.weight", c.kv_width(), c.dim);
    add(layer(i) + "self_attn.v_proj.weight", c.kv_width(), c.dim);
    align();
    add(layer(i) + "self_attn.o_proj.weight", c.dim, c.query_width());
    align();
    add(layer(i) + "mlp.gate_proj.weight", c.ffn, c.dim);
    add(layer(i) + "mlp.up_proj.weight", c.ffn, c.dim);
    align();
    add(layer(i) + "mlp.down_proj.weight", c.dim, c.ffn);
  }
  align();
  matrices_ = size_;
  for (int i = 0; i < c.layers; ++i) {
    add(layer(i) + "input_layernorm.weight", 1, c.dim);
    align();
    add(layer(i) + "post_attention_layernorm.weight", 1, c.dim);
    align();
  }
  add("model.norm.weight", 1, c.dim);
  align();
}

void WeightMap::add(const std::string& name, int rows, int cols) {
  entries_.push_back({name, rows, cols, size_});
  size_ += entries_.back().size();
  constexpr int64_t kMost = int64_t{1} << 48;
  if (size_ > kMost) fail_f("no memory holds the model's weights, more than {}", kMost);
}

void WeightMap::align() {
  constexpr int64_t kElements = 128;  // 256 bytes of the narrowest type
  size_ = (size_ + kElements - 1) / kElements * kElements;
}

const WeightEntry& WeightMap::find(const std::string& name) const {
  auto found = std::ranges::find(entries_, name, &WeightEntry::name);
  if (found == entries_.end()) fail("the model has no weight called " + name);
  return *found;
}

int64_t WeightMap::parameters() const {
  int64_t count = 0;
  for (const WeightEntry& e : entries_) count += e.size();
  return count;
}

void init_weights(const WeightMap& map, uint64_t seed, std::span<float> data, float stddev) {
  std::ranges::fill(data, 0.f);
  uint64_t stream = 0;
  for (const WeightEntry& e : map.entries()) {
    const std::span<float> values = data.subspan(e.offset, e.size());
    if (e.rows == 1)
      std::ranges::fill(values, 1.f);
    else
      Rng(seed, stream).fill_normal(values, stddev);
    ++stream;
  }
}

std::vector<double> rope_frequencies(const ModelConfig& config) {
  std::vector<double> out = kernels::rope_frequencies(config.rope_theta, config.head_dim);
  if (!config.rope_scaling) return out;
  // Llama 3.1: waves shorter than the original context / high_freq_factor stay, those longer than
  // context / low_freq_factor are stretched by the whole factor, and in between it is blended.
  const RopeScaling& s = *config.rope_scaling;
  for (double& frequency : out) {
    const double turns = s.original_context * frequency / (2 * std::numbers::pi);
    const double kept = std::clamp(
        (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor), 0.0, 1.0);
    frequency *= kept + (1 - kept) / s.factor;
  }
  return out;
}

}  // namespace cria
