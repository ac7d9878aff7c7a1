#include "model/config.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/json_fields.h"
#include "base/nearest.h"

namespace cria {
namespace {

constexpr int kMaxSize = 1 << 24;  // keeps every product of two sizes far from overflow

ModelConfig llama_1b() {
  return {.dim = 2048,
          .layers = 16,
          .heads = 32,
          .kv_heads = 8,
          .head_dim = 64,
          .ffn = 8192,
          .vocab = 128256,
          .context = 131072,
          .rope_theta = 500000,
          .rope_scaling = RopeScaling{.factor = 32}};
}

std::vector<Preset> make_presets() {
  return {
      {"debug",
       {.dim = 64,
        .layers = 2,
        .heads = 4,
        .kv_heads = 2,
        .head_dim = 16,
        .ffn = 160,
        .vocab = 256,
        .context = 64},
       2,
       32},
      {"small",
       {.dim = 512,
        .layers = 8,
        .heads = 8,
        .kv_heads = 4,
        .head_dim = 64,
        .ffn = 2048,
        .vocab = 1000,
        .context = 128},
       8,
       128},
      {"medium",
       {.dim = 1024,
        .layers = 12,
        .heads = 16,
        .kv_heads = 8,
        .head_dim = 64,
        .ffn = 4096,
        .vocab = 1000,
        .context = 512},
       16,
       512},
      {"llama-1b", llama_1b(), 1, 1024},
  };
}

using Fields = JsonFields<Json>;

int size(const Fields& fields, const char* name) { return fields.whole(name, 1, kMaxSize); }
int size(const Fields& fields, const char* name, int otherwise) {
  return fields.has(name) ? size(fields, name) : otherwise;
}

void check_architecture(const Fields& fields) {
  const std::string& where = fields.where();
  const std::string type = fields.text("model_type", "");
  if (type != "llama") {
    fail_f("{} describes a model of type \"{}\"; cria knows \"llama\" (LlamaForCausalLM)", where,
           type);
  }
  const std::string activation = fields.text("hidden_act", "silu");
  if (activation != "silu")
    fail_f("{}: the activation \"{}\" is not supported; cria knows \"silu\"", where, activation);
  for (const char* bias : {"attention_bias", "mlp_bias"}) {
    if (fields.flag(bias, false))
      fail_f("{}: \"{}\" is true, but cria's linear layers have no bias", where, bias);
  }
}

std::optional<RopeScaling> scaling_from(const Fields& fields) {
  const std::string type = fields.text("rope_type", fields.text("type", "default"));
  if (type == "default") return std::nullopt;
  if (type != "llama3") {
    fail_f("{}: the rope scaling \"{}\" is not supported; cria knows \"llama3\" and none",
           fields.where(), type);
  }
  return RopeScaling{.factor = fields.number("factor"),
                     .low_freq_factor = fields.number("low_freq_factor"),
                     .high_freq_factor = fields.number("high_freq_factor"),
                     .original_context = size(fields, "original_max_position_embeddings")};
}

void read_rope(const Fields& fields, ModelConfig& config) {
  config.rope_theta = fields.number("rope_theta", 10000);
  if (const auto scaling = fields.optional_child("rope_scaling"))
    config.rope_scaling = scaling_from(*scaling);
  // transformers 5 keeps both in one object.
  if (const auto rope = fields.optional_child("rope_parameters")) {
    config.rope_theta = rope->number("rope_theta", config.rope_theta);
    config.rope_scaling = scaling_from(*rope);
  }
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = make_presets();
  return all;
}

const Preset& find_preset(std::string_view name) {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  fail_f("there is no config \"{}\"{}, or give a config.json", name, suggest(name, names));
}

bool is_preset(std::string_view name) {
  return std::ranges::any_of(presets(), [&](const Preset& p) { return p.name == name; });
}

void check_config(const ModelConfig& c) {
  const std::pair<const char*, int> sizes[] = {
      {"dim", c.dim},           {"layers", c.layers}, {"heads", c.heads}, {"kv_heads", c.kv_heads},
      {"head_dim", c.head_dim}, {"ffn", c.ffn},       {"vocab", c.vocab}, {"context", c.context}};
  for (const auto& [name, size] : sizes) {
    if (size < 1 || size > kMaxSize)
      fail_f("{} is {}; a model needs 1 to {}", name, size, kMaxSize);
  }
  if (c.heads % c.kv_heads != 0) {
    fail_f("{} heads cannot share {} key/value heads evenly; make kv_heads a divisor of heads",
           c.heads, c.kv_heads);
  }
  if (c.head_dim % 2 != 0)
    fail_f("head_dim is {}; rotary embeddings turn pairs, so make it even", c.head_dim);
  if (int64_t{c.heads} * c.head_dim > kMaxSize)
    fail_f("{} heads of {} are wider than {}; make them smaller", c.heads, c.head_dim, kMaxSize);
  if (!(c.norm_eps > 0 && c.norm_eps < 1))
    fail_f("norm_eps is {}; make it a small positive number", c.norm_eps);
  if (!(c.rope_theta > 1 && std::isfinite(c.rope_theta)))
    fail_f("rope_theta is {}; make it greater than 1", c.rope_theta);
  if (!c.rope_scaling) return;
  const RopeScaling& s = *c.rope_scaling;
  const bool ordered = s.low_freq_factor > 0 && s.high_freq_factor > s.low_freq_factor;
  if (!(s.factor >= 1 && ordered && std::isfinite(s.factor + s.high_freq_factor)) ||
      s.original_context < 1) {
    fail_f(
        "rope scaling by {} between {} and {} of {} positions cannot be; it needs factor >= 1 "
        "and 0 < low < high",
        s.factor, s.low_freq_factor, s.high_freq_factor, s.original_context);
  }
}

ModelConfig config_from_json(const Json& json, const std::string& where) {
  const Fields fields(json, where);
  check_architecture(fields);
  ModelConfig config;
  config.dim = size(fields, "hidden_size");
  config.layers = size(fields, "num_hidden_layers");
  config.heads = size(fields, "num_attention_heads");
  config.kv_heads = size(fields, "num_key_value_heads", config.heads);
  config.head_dim = size(fields, "head_dim", std::max(config.dim / config.heads, 1));
  config.ffn = size(fields, "intermediate_size");
  config.vocab = size(fields, "vocab_size");
  config.context = size(fields, "max_position_embeddings", 2048);
  config.tied = fields.flag("tie_word_embeddings", false);
  config.norm_eps = fields.number("rms_norm_eps", 1e-6);
  read_rope(fields, config);
  try {
    check_config(config);
  } catch (const Error& error) {
    fail_f("{}: {}", where, error.what());
  }
  return config;
}

Json config_to_json(const ModelConfig& config) {
  Json scaling = nullptr;
  if (config.rope_scaling) {
    scaling = {{"rope_type", "llama3"},
               {"factor", config.rope_scaling->factor},
               {"low_freq_factor", config.rope_scaling->low_freq_factor},
               {"high_freq_factor", config.rope_scaling->high_freq_factor},
               {"original_max_position_embeddings", config.rope_scaling->original_context}};
  }
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"hidden_size", config.dim},
          {"num_hidden_layers", config.layers},
          {"num_attention_heads", config.heads},
          {"num_key_value_heads", config.kv_heads},
          {"head_dim", config.head_dim},
          {"intermediate_size", config.ffn},
          {"vocab_size", config.vocab},
          {"max_position_embeddings", config.context},
          {"tie_word_embeddings", config.tied},
          {"hidden_act", "silu"},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"rms_norm_eps", config.norm_eps},
          {"rope_theta", config.rope_theta},
          {"rope_scaling", scaling},
          {"bos_token_id", nullptr},
          {"eos_token_id", nullptr}};
}

}  // namespace cria
