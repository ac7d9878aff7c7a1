// A trainer's whole state as files: weights as transformers reads them, moments, and how far it
// got.
#pragma once

#include <filesystem>

#include "base/json.h"
#include "model/tokenizer.h"
#include "train/trainer.h"

namespace cria {

// The weights of a model in Hugging Face's layout into a flat array.
void load_weights(const WeightMap& map, const std::filesystem::path& folder, std::span<float> flat);

// The same into a trainer, part by part; the configurations must be equal. After an Error the trainer
// may hold some of the weights.
void load_model(Trainer& trainer, const std::filesystem::path& folder);

struct SaveOptions {
  uint64_t seed = 0;
  int keep = 2;                          // checkpoints
  const Tokenizer* tokenizer = nullptr;  // goes beside the weights
  Json options = Json::object();         // how the run was started, for whoever goes on with it
};

// A checkpoint under `root` of where the trainer stands; returns its folder. Part by part, so that
// host memory never holds a second copy.
std::filesystem::path save_state(Trainer& trainer, const std::filesystem::path& root,
                                 const SaveOptions& how);

// Goes on from a checkpoint: training continues bit for bit under the same conditions. Returns those
// that it was made under (conditions.h). An Error when it was made with other settings, before anything
// is changed.
Json load_state(Trainer& trainer, const std::filesystem::path& checkpoint, uint64_t seed);

}  // namespace cria
