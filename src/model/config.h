// The sizes of a LLaMA: presets, and Hugging Face's config.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/tensor.h"

namespace cria {

// How Llama 3.1 and later stretch their rotary frequencies to longer contexts.
struct RopeScaling {
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int original_context = 8192;

  bool operator==(const RopeScaling&) const = default;
};

struct ModelConfig {
  int dim = 0;  // D
  int layers = 0;
  int heads = 0;     // H
  int kv_heads = 0;  // G, a divisor of H
  int head_dim = 0;  // K, even; H * K need not be D
  int ffn = 0;       // F
  int vocab = 0;     // V
  int context = 0;   // the longest sequence it is meant for
  bool tied = true;  // the head is the embedding
  double norm_eps = 1e-5;
  double rope_theta = 10000;
  std::optional<RopeScaling> rope_scaling = {};

  // Columns of heads in a row, each with the gap behind it (see pitch_of).
  int head_pitch() const { return pitch_of(head_dim); }
  int query_width() const { return heads * head_pitch(); }
  int kv_width() const { return kv_heads * head_pitch(); }
  int qkv_width() const { return query_width() + 2 * kv_width(); }
  // Columns of [gate | up].
  int gate_up_width() const { return 2 * pitch_of(ffn); }

  bool operator==(const ModelConfig&) const = default;
};

// Whether rows or heads of the model's tensors have gaps behind them (see pitch_of).
bool has_gaps(const ModelConfig& config);

// A model with the batch it is usually trained on.
struct Preset {
  std::string name;
  ModelConfig model;
  int batch;
  int seq;
};

const std::vector<Preset>& presets();

// The preset of this name; an Error that lists the names when there is none.
const Preset& find_preset(std::string_view name);
bool is_preset(std::string_view name);

// An Error with what to change when sizes cannot be (H not a multiple of G, odd head_dim, ...).
void check_config(const ModelConfig& config);

// Hugging Face's config.json of a LlamaForCausalLM. `where` names the file in errors.
ModelConfig config_from_json(const Json& json, const std::string& where);
Json config_to_json(const ModelConfig& config);

}  // namespace cria
