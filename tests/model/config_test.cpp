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
  expect_error(with("rms_norm_eps", 0), {"norm_eps"});
  expect_error(with("rope_theta", -1), {"rope_theta"});
  expect_error(with("tie_word_embeddings", "yes"), {"tie_word_embeddings"});
  expect_error([] { config_from_json(Json::array(), "m/config.json"); }, {"not a JSON object"});
}

}  // namespace
}  // namespace cria
