#include "model/config.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "support/files.h"

namespace cria {
namespace {

using test::expect_error;

// As transformers writes it for Llama-3.2-1B.
Json llama_json() {
  return Json::parse(R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": 128001, "head_dim": 64,
    "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
    "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": false,
    "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16,
    "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
    "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
      "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    "rope_theta": 500000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    "use_cache": true, "vocab_size": 128256})");
}

TEST(Config, PresetsAreValidAndFound) {
  for (const Preset& preset : presets()) {
    EXPECT_NO_THROW(check_config(preset.model)) << preset.name;
    EXPECT_EQ(&find_preset(preset.name), &preset);
    EXPECT_LE(preset.seq, preset.model.context);
  }
  expect_error([] { find_preset("huge"); }, {"\"huge\"", "debug, small, medium, llama-1b"});
}

TEST(Config, JsonRoundTrip) {
  for (const Preset& preset : presets())
    EXPECT_EQ(config_from_json(config_to_json(preset.model), "a"), preset.model) << preset.name;
  ModelConfig odd = find_preset("debug").model;
  odd.tied = false;
  odd.head_dim = 24;
  odd.norm_eps = 3e-6;
  EXPECT_EQ(config_from_json(config_to_json(odd), "a"), odd);
}

TEST(Config, ReadsLlama) {
  EXPECT_EQ(config_from_json(llama_json(), "a"), find_preset("llama-1b").model);
}

TEST(Config, ReadsRopeParameters) {
  Json json = llama_json();
  json["rope_parameters"] = json["rope_scaling"];
  json["rope_parameters"]["rope_theta"] = 500000.0;
  json.erase("rope_scaling");
  json.erase("rope_theta");
  EXPECT_EQ(config_from_json(json, "a"), find_preset("llama-1b").model);
  json["rope_parameters"] = {{"rope_theta", 12345.0}, {"rope_type", "default"}};
  EXPECT_EQ(config_from_json(json, "a").rope_theta, 12345.0);
  EXPECT_FALSE(config_from_json(json, "a").rope_scaling);
}

TEST(Config, AbsentFieldsHaveTransformersDefaults) {
  const Json json = Json::parse(R"({"model_type": "llama", "hidden_size": 96,
    "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 10, "vocab_size": 7,
    "head_dim": null, "rope_scaling": null})");
  const ModelConfig config = config_from_json(json, "a");
  EXPECT_EQ(config.kv_heads, 4);
  EXPECT_EQ(config.head_dim, 24);
  EXPECT_EQ(config.context, 2048);
  EXPECT_FALSE(config.tied);
  EXPECT_EQ(config.norm_eps, 1e-6);
  EXPECT_EQ(config.rope_theta, 10000);
  EXPECT_FALSE(config.rope_scaling);
}

using Settings = std::vector<std::pair<std::string, Json>>;

// What does nothing is no reason to refuse a model.
TEST(Config, SettingsThatChangeNothingPass) {
  Json json = llama_json();
  const Settings nothing = {{"partial_rotary_factor", 1.0},
                            {"logit_scale", 1},
                            {"logits_scaling", 1.0},
                            {"embedding_multiplier", 1.0},
                            {"residual_multiplier", 1},
                            {"attention_multiplier", 0.125},
                            {"query_pre_attn_scalar", 64},
                            {"sliding_window", 131072},
                            {"quantization_config", nullptr},
                            {"final_logit_softcapping", nullptr},
                            {"use_qk_norm", false},
                            {"hidden_act", "swish"},
                            {"layer_types", {"full_attention", "full_attention"}},
                            {"embedding_multiplier", nullptr},
                            {"position_embedding_type", "rope"}};
  for (const auto& [name, value] : nothing) json[name] = value;
  EXPECT_EQ(config_from_json(json, "a"), find_preset("llama-1b").model);
  json["sliding_window"] = nullptr;
  EXPECT_EQ(config_from_json(json, "a"), find_preset("llama-1b").model);
  json["sliding_window"] = 4096;
  json["use_sliding_window"] = false;
  EXPECT_EQ(config_from_json(json, "a"), find_preset("llama-1b").model);
  json["rope_scaling"] = {{"type", "linear"}, {"factor", 1.0}};
  EXPECT_FALSE(config_from_json(json, "a").rope_scaling);
}

TEST(Config, SettingsThatChangeTheResultAreNamed) {
  const Settings changes = {{"partial_rotary_factor", 0.5},
                            {"rotary_pct", 0.25},
                            {"rotary_dim", 32},
                            {"logit_scale", 0.0625},
                            {"logits_scaling", 8.0},
                            {"embedding_multiplier", 12.0},
                            {"residual_multiplier", 0.22},
                            {"attention_multiplier", 0.0078125},
                            {"query_pre_attn_scalar", 256},
                            {"sliding_window", 4096},
                            {"sliding_window", 131071},
                            {"quantization_config", {{"quant_method", "gptq"}, {"bits", 4}}},
                            {"attn_logit_softcapping", 50.0},
                            {"final_logit_softcapping", 30.0},
                            {"clip_qkv", 8.0},
                            {"attention_chunk_size", 8192},
                            {"use_qk_norm", true},
                            {"use_parallel_residual", true},
                            {"qkv_bias", true},
                            {"hidden_activation", "gelu_pytorch_tanh"},
                            {"layer_types", {"full_attention", "sliding_attention"}},
                            {"position_embedding_type", "alibi"},
                            {"logit_scale", "1"}};
  for (const auto& [name, value] : changes) {
    Json json = llama_json();
    json[name] = value;
    const std::string word = name == "hidden_activation" ? value.get<std::string>() : name;
    expect_error([&] { config_from_json(json, "m/config.json"); }, {"m/config.json", word});
  }
  // Where transformers 5 has them.
  Json json = llama_json();
  json["rope_scaling"]["partial_rotary_factor"] = 0.5;
  expect_error([&] { config_from_json(json, "a"); }, {"rope_scaling", "partial_rotary_factor"});
  json["rope_scaling"] = nullptr;
  json["rope_parameters"] = {{"full_attention", {{"rope_type", "default"}}},
                             {"sliding_attention", {{"rope_type", "default"}}}};
  expect_error([&] { config_from_json(json, "a"); }, {"rope_parameters", "layer to layer"});
}

// What is published beside well-known models, as far as it says how to run them.
TEST(Config, PublishedModelsAreReadOrRefusedByName) {
  const auto read = [](const char* text) { return config_from_json(Json::parse(text), "m"); };
  const ModelConfig smollm2 = read(R"({"architectures": ["LlamaForCausalLM"],
    "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
    "hidden_act": "silu", "hidden_size": 576, "initializer_range": 0.041666666666666664,
    "intermediate_size": 1536, "is_llama_config": true, "max_position_embeddings": 8192,
    "mlp_bias": false, "model_type": "llama", "num_attention_heads": 9, "num_hidden_layers": 30,
    "num_key_value_heads": 3, "pad_token_id": 2, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
    "rope_interleaved": false, "rope_scaling": null, "rope_theta": 100000,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_cache": true,
    "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}}, "vocab_size": 49152})");
  EXPECT_EQ(smollm2.head_dim, 64);
  EXPECT_TRUE(smollm2.tied);
  EXPECT_EQ(smollm2.rope_theta, 100000);
  const ModelConfig tiny_llama = read(R"({"architectures": ["LlamaForCausalLM"],
    "attention_bias": false, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
    "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 5632,
    "max_position_embeddings": 2048, "model_type": "llama", "num_attention_heads": 32,
    "num_hidden_layers": 22, "num_key_value_heads": 4, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
    "rope_scaling": null, "rope_theta": 10000.0, "tie_word_embeddings": false,
    "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 32000})");
  EXPECT_EQ(tiny_llama.kv_heads, 4);
  EXPECT_FALSE(tiny_llama.tied);

  const auto refused = [&](const char* text, std::initializer_list<std::string> words) {
    expect_error([&] { read(text); }, words);
  };
  refused(R"({"architectures": ["MistralForCausalLM"], "hidden_act": "silu", "hidden_size": 4096,
    "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096, "vocab_size": 32000})",
          {"\"mistral\""});
  refused(R"({"architectures": ["Qwen2ForCausalLM"], "hidden_act": "silu", "hidden_size": 896,
    "intermediate_size": 4864, "max_position_embeddings": 131072, "max_window_layers": 24,
    "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24,
    "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
    "sliding_window": 131072, "tie_word_embeddings": true, "use_sliding_window": false,
    "vocab_size": 151936})",
          {"\"qwen2\"", "attention"});
  refused(R"({"architectures": ["Phi3ForCausalLM"], "hidden_act": "silu", "hidden_size": 3072,
    "intermediate_size": 8192, "max_position_embeddings": 4096, "model_type": "phi3",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
    "rms_norm_eps": 1e-05, "sliding_window": 2047, "vocab_size": 32064})",
          {"\"phi3\""});
  refused(R"({"architectures": ["GemmaForCausalLM"], "head_dim": 256, "hidden_act": "gelu",
    "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2048, "intermediate_size": 16384,
    "max_position_embeddings": 8192, "model_type": "gemma", "num_attention_heads": 8,
    "num_hidden_layers": 18, "num_key_value_heads": 1, "rms_norm_eps": 1e-06,
    "rope_theta": 10000.0, "vocab_size": 256000})",
          {"\"gemma\""});
  const std::string granite = R"({"architectures": ["GraniteForCausalLM"], "attention_bias": false,
    "attention_multiplier": 0.015625, "embedding_multiplier": 12.0, "hidden_act": "silu",
    "hidden_size": 2048, "intermediate_size": 8192, "logits_scaling": 8.0,
    "max_position_embeddings": 4096, "mlp_bias": false, "model_type": "TYPE",
    "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8,
    "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": null,
    "rope_theta": 10000.0, "tie_word_embeddings": true, "vocab_size": 49155})";
  const auto granite_as = [&](const std::string& type) {
    return std::string(granite).replace(granite.find("TYPE"), 4, type);
  };
  refused(granite_as("granite").c_str(), {"\"granite\""});
  refused(granite_as("llama").c_str(), {"logits_scaling"});  // said to be what it is not
  refused(R"({"architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "hidden_size": 4096,
    "intermediate_size": 11008, "max_position_embeddings": 16384, "model_type": "llama",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
    "rms_norm_eps": 1e-06, "rope_scaling": {"factor": 4.0, "type": "linear"}, "rope_theta": 100000,
    "tie_word_embeddings": false, "vocab_size": 32256})",
          {"\"linear\""});
}

TEST(Config, RefusesWhatItCannotRun) {
  const auto with = [](const char* key, Json value) {
    return [=] {
      Json json = llama_json();
      json[key] = value;
      config_from_json(json, "m/config.json");
    };
  };
  expect_error(with("model_type", "gpt2"), {"m/config.json", "gpt2", "llama"});
  expect_error(with("hidden_act", "gelu"), {"m/config.json", "gelu"});
  expect_error(with("attention_bias", true), {"m/config.json", "attention_bias"});
  expect_error(with("mlp_bias", true), {"mlp_bias"});
  expect_error(with("rope_scaling", {{"rope_type", "yarn"}}), {"yarn", "not supported"});
  expect_error(with("rope_scaling", {{"type", "linear"}, {"factor", 2}}), {"linear"});
  expect_error(with("rope_scaling", {{"rope_type", "llama3"}}), {"no \"factor\""});
  expect_error(with("rope_scaling", 3), {"not a JSON object"});
  expect_error(with("hidden_size", -1), {"hidden_size", "whole number"});
  expect_error(with("hidden_size", 1e300), {"hidden_size"});
  expect_error(with("hidden_size", 18446744073709551615u), {"hidden_size"});
  expect_error(with("hidden_size", "2048"), {"hidden_size"});
  expect_error(with("hidden_size", nullptr), {"has no \"hidden_size\""});
  expect_error(with("vocab_size", 2147483648), {"vocab_size"});
  expect_error(with("num_key_value_heads", 5), {"m/config.json", "5 key/value heads"});
  expect_error(with("head_dim", 63), {"head_dim is 63", "even"});
  expect_error(with("head_dim", 16777216), {"wider than"});
  expect_error(with("num_hidden_layers", 1 << 24), {"num_hidden_layers", "1 to 4096"});
  expect_error(with("rms_norm_eps", 0), {"norm_eps"});
  expect_error(with("rope_theta", -1), {"rope_theta"});
  expect_error(with("tie_word_embeddings", "yes"), {"tie_word_embeddings"});
  expect_error([] { config_from_json(Json::array(), "m/config.json"); }, {"not a JSON object"});
}

}  // namespace
}  // namespace cria
