#include "model/config.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/json_fields.h"
#include "base/nearest.h"

namespace cria {
namespace {

constexpr int kMaxSize = 1 << 24;    // keeps every product of two sizes far from overflow
constexpr int kMaxLayers = 1 << 12;  // each has names and places of its own

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
  if (type == "qwen2") {
    fail_f(
        "{} describes a model of type \"qwen2\", whose attention has biases, and cria's has none; "
        "of Qwen 2 only the tokenizer can be used",
        where);
  }
  if (type != "llama") {
    fail_f("{} describes a model of type \"{}\"; cria knows \"llama\" (LlamaForCausalLM)", where,
           type);
  }
  for (const char* name : {"hidden_act", "hidden_activation"}) {
    const std::string activation = fields.text(name, "silu");
    if (activation != "silu" && activation != "swish")  // the same
      fail_f("{}: the activation \"{}\" is not supported; cria knows \"silu\"", where, activation);
  }
  for (const char* bias : {"attention_bias", "mlp_bias", "qkv_bias", "use_bias", "bias"}) {
    if (fields.flag(bias, false))
      fail_f("{}: \"{}\" is true, but cria's linear layers have no bias", where, bias);
  }
}

[[noreturn]] void refuse_setting(const Fields& fields, const std::string& name) {
  const Json& value = fields.need(name);
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  fail_f("{}: \"{}\" is {}, which makes another model of it than cria can run", fields.where(),
         name, value.is_structured() ? "set" : text);
}

// Settings of LLaMA's relatives that would change the result and fail nowhere else. Those with the
// value that does nothing are no reason to refuse a model.
void check_settings(const Fields& fields, const ModelConfig& config) {
  for (const char* name : {"quantization_config", "attn_logit_softcapping",
                           "final_logit_softcapping", "clip_qkv", "attention_chunk_size"}) {
    if (fields.has(name)) refuse_setting(fields, name);
  }
  for (const char* name : {"use_qk_norm", "qk_norm", "alibi", "use_parallel_residual",
                           "parallel_attn", "use_bidirectional_attention"}) {
    if (fields.flag(name, false)) refuse_setting(fields, name);
  }
  const std::pair<const char*, double> neutral[] = {
      {"partial_rotary_factor", 1},
      {"rotary_pct", 1},
      {"rotary_dim", config.head_dim},
      {"logit_scale", 1},
      {"logits_scaling", 1},
      {"embedding_multiplier", 1},
      {"scale_emb", 1},
      {"residual_multiplier", 1},
      {"attention_multiplier", 1 / std::sqrt(config.head_dim)},
      {"query_pre_attn_scalar", config.head_dim}};
  for (const auto& [name, value] : neutral) {
    constexpr double kRounding = 1e-6;
    if (std::abs(fields.number(name, value) - value) > kRounding * value)
      refuse_setting(fields, name);
  }
  // A window that holds the whole context hides nothing.
  if (fields.has("sliding_window") && fields.flag("use_sliding_window", true) &&
      size(fields, "sliding_window") < config.context) {
    fail_f(
        "{}: \"sliding_window\" is {}, shorter than the context of {}, and cria's attention sees "
        "all of it: lower \"max_position_embeddings\" to {} and use it up to there",
        fields.where(), size(fields, "sliding_window"), config.context,
        size(fields, "sliding_window"));
  }
  const Json* layers = fields.find("layer_types");
  if (layers != nullptr &&
      std::ranges::any_of(*layers, [](const Json& type) { return type != "full_attention"; }))
    refuse_setting(fields, "layer_types");
  const std::string positions = fields.text("position_embedding_type", "rope");
  if (positions != "rope" && positions != "rotary")
    refuse_setting(fields, "position_embedding_type");
}

std::optional<RopeScaling> scaling_from(const Fields& fields) {
  const std::string type = fields.text("rope_type", fields.text("type", "default"));
  if (type == "default") return std::nullopt;
  if (type == "linear" && fields.number("factor") == 1) return std::nullopt;
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
  // The first is older; transformers 5 keeps everything in the second.
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const auto rope = fields.optional_child(name);
    if (!rope) continue;
    if (std::ranges::any_of(fields.need(name), [](const Json& value) { return value.is_object(); }))
      fail_f("{} differs from layer to layer, which cria cannot run", rope->where());
    if (rope->number("partial_rotary_factor", 1) != 1)
      refuse_setting(*rope, "partial_rotary_factor");
    config.rope_theta = rope->number("rope_theta", config.rope_theta);
    config.rope_scaling = scaling_from(*rope);
  }
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = make_presets();
  return all;
}

bool has_gaps(const ModelConfig& c) {
  for (const int width : {c.dim, c.head_dim, c.ffn, c.vocab})
    if (width != pitch_of(width)) return true;
  return false;
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
    const int most = std::string_view(name) == "layers" ? kMaxLayers : kMaxSize;
    if (size < 1 || size > most) fail_f("{} is {}; a model needs 1 to {}", name, size, most);
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
  config.layers = fields.whole("num_hidden_layers", 1, kMaxLayers);
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
  check_settings(fields, config);
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
