#include "model/weights.h"

#include <algorithm>
#include <numbers>
#include <utility>

#include "base/format.h"
#include "base/rng.h"
#include "kernels/rope.h"
#include "runtime/thread_pool.h"

namespace cria {

WeightMap::WeightMap(const ModelConfig& c) {
  check_config(c);
  const Extent queries(c.heads, c.head_dim), keys(c.kv_heads, c.head_dim);
  add_matrix("model.embed_tokens.weight", c.vocab, c.dim);
  if (!c.tied) {
    align();
    add_matrix("lm_head.weight", c.vocab, c.dim);
  }
  auto layer = [](int i) { return "model.layers." + std::to_string(i) + "."; };
  for (int i = 0; i < c.layers; ++i) {
    align();
    add_matrix(layer(i) + "self_attn.q_proj.weight", queries, c.dim);
    add_matrix(layer(i) + "self_attn.k_proj.weight", keys, c.dim);
    add_matrix(layer(i) + "self_attn.v_proj.weight", keys, c.dim);
    align();
    add_matrix(layer(i) + "self_attn.o_proj.weight", c.dim, queries);
    align();
    add_matrix(layer(i) + "mlp.gate_proj.weight", c.ffn, c.dim);
    add_matrix(layer(i) + "mlp.up_proj.weight", c.ffn, c.dim);
    align();
    add_matrix(layer(i) + "mlp.down_proj.weight", c.dim, c.ffn);
  }
  align();
  matrices_ = size_;
  for (int i = 0; i < c.layers; ++i) {
    add_vector(layer(i) + "input_layernorm.weight", c.dim);
    add_vector(layer(i) + "post_attention_layernorm.weight", c.dim);
  }
  add_vector("model.norm.weight", c.dim);
}

void WeightMap::add_matrix(const std::string& name, Extent rows, Extent cols) {
  require(rows.parts == 1 || cols.parts == 1, "a weight has heads in one direction only");
  const int64_t ld = pitch_of(int64_t{cols.laid_out});
  const Runs by_rows{.outer = rows.parts,
                     .middle = rows.width,
                     .inner = cols.width,
                     .outer_step = pitch_of(rows.width) * ld,
                     .middle_step = ld};
  const Runs by_columns{.outer = rows.width,
                        .middle = cols.parts,
                        .inner = cols.width,
                        .outer_step = ld,
                        .middle_step = pitch_of(cols.width)};
  add({.name = name,
       .shape = {rows.size(), cols.size()},
       .offset = size_,
       .rows = rows.laid_out,
       .cols = cols.laid_out,
       .ld = ld,
       .runs = cols.parts > 1 ? by_columns : by_rows},
      pitch_of(int64_t{rows.laid_out}) * ld);
}

void WeightMap::add_vector(const std::string& name, int cols) {
  add({.name = name,
       .shape = {cols},
       .offset = size_,
       .rows = 1,
       .cols = cols,
       .ld = pitch_of(int64_t{cols}),
       .runs = {.inner = cols}},
      cols);
  align();
}

void WeightMap::add(WeightEntry entry, int64_t elements) {
  entries_.push_back(std::move(entry));
  size_ += elements;
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

void init_part(const WeightMap& map, uint64_t seed, float stddev, int64_t begin,
               std::span<float> part) {
  std::ranges::fill(part, 0.f);
  const int64_t end = begin + std::ssize(part);
  const auto& entries = map.entries();
  auto e = std::ranges::upper_bound(entries, begin, {}, &WeightEntry::offset);
  if (e != entries.begin()) --e;
  for (; e != entries.end() && e->offset < end; ++e) {
    Rng rng(seed, static_cast<uint64_t>(e - entries.begin()));
    e->runs.each_within(begin - e->offset, end - e->offset,
                        [&](int64_t place, int64_t first, int64_t count) {
                          const auto values = part.subspan(e->offset + place - begin, count);
                          rng.seek(first);
                          if (e->is_matrix())
                            rng.fill_normal(values, stddev);
                          else
                            std::ranges::fill(values, 1.f);
                        });
  }
}

void init_weights(const WeightMap& map, uint64_t seed, std::span<float> data, float stddev) {
  constexpr int64_t kPart = 1 << 16;
  ThreadPool::shared().run((std::ssize(data) + kPart - 1) / kPart, [&](int64_t i, int) {
    const int64_t begin = i * kPart;
    init_part(map, seed, stddev, begin,
              data.subspan(begin, std::min(kPart, std::ssize(data) - begin)));
  });
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
