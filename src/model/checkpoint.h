// Models in folders: as transformers reads and writes them, and a run's checkpoints, of which a
// kill at any moment leaves the last one whole. docs/checkpoints.md has the formats.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file_lock.h"
#include "base/json.h"
#include "model/config.h"
#include "model/safetensors.h"
#include "model/tokenizer.h"

namespace cria {

struct ModelFiles {
  ModelConfig config;
  std::vector<NamedTensor<const float>> weights;
  const Tokenizer* tokenizer = nullptr;  // none is written without
};

// config.json, weights and tokenizer into a folder, which is made if need be.
void save_model(const std::filesystem::path& folder, const ModelFiles& model);

ModelConfig load_config(const std::filesystem::path& folder);

// Fills every tensor of the list from the folder's files; an Error names the tensor that is
// missing, of another shape, or not of this model.
void load_weights(const std::filesystem::path& folder, std::span<const NamedTensor<float>> weights);

// What training needs besides the model to go on.
struct TrainingFiles {
  std::vector<NamedTensor<const float>> optimizer;
  Json progress;  // an object; the loop's own
};

// The folder of a run: step-000100/ is a model's folder with optimizer.safetensors and
// training.json in it, and the link `latest` names the last one that was saved whole.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path root) : root_(std::move(root)) {}

  // Makes the folder if need be; an Error when nothing can be saved there.
  void prepare() const;

  // Keeps other processes from saving there while it lives; an Error that names the one that does.
  FileLock lock() const;

  // Saves everything of a step, then makes it the latest, then removes all but the `keep` last
  // steps up to this one. Returns its folder.
  std::filesystem::path save(int64_t step, const ModelFiles& model, const TrainingFiles& training,
                             int keep) const;

  // What the link names, or without one the last step; nothing when none was saved yet.
  std::optional<std::filesystem::path> latest() const;

 private:
  void install(const std::filesystem::path& made, const std::filesystem::path& place) const;
  void point_latest_to(const std::string& name) const;
  std::optional<std::filesystem::path> last_step() const;
  void remove(const std::filesystem::path& checkpoint) const;
  void remove_leftovers() const;
  void remove_before(int64_t step, int keep) const;

  std::filesystem::path root_;
};

// From a checkpoint's folder.
Json load_progress(const std::filesystem::path& checkpoint);

// Fills the optimizer's tensors, too.
Json load_training(const std::filesystem::path& checkpoint,
                   std::span<const NamedTensor<float>> optimizer);

}  // namespace cria
