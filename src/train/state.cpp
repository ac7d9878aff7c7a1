#include "train/state.h"

#include <vector>

#include "base/format.h"
#include "model/checkpoint.h"
#include "train/conditions.h"

namespace cria {
namespace {

// Views of a flat array as the file's tensors.
template <class T>
std::vector<NamedTensor<T>> named(const WeightMap& map, std::span<T> flat,
                                  const std::string& prefix = "") {
  std::vector<NamedTensor<T>> out;
  for (const WeightEntry& e : map.entries())
    out.push_back({prefix + e.name, e.shape, flat.data() + e.offset, e.runs});
  return out;
}

// What must be the same for a run to go on as if it had not been interrupted.
Json settings(const Trainer& trainer, uint64_t seed) {
  const TrainerOptions& o = trainer.options();
  return {{"plan", o.plan},
          {"dtype", name_of(o.dtype)},
          {"tf32", o.precision == Precision::tf32},
          {"batch", o.batch},
          {"seq", o.seq},
          {"accumulate", o.accumulate},
          {"seed", seed},
          {"beta1", o.adamw.beta1},
          {"beta2", o.adamw.beta2},
          {"eps", o.adamw.eps},
          {"weight_decay", o.adamw.weight_decay},
          {"max_norm", o.adamw.max_norm}};
}

std::vector<float> read(Trainer& trainer, Trainer::State which) {
  std::vector<float> out(trainer.map().size());
  trainer.read(which, out);
  return out;
}

}  // namespace

void load_weights(const WeightMap& map, const std::filesystem::path& folder,
                  std::span<float> flat) {
  load_weights(folder, named<float>(map, flat));
}

void load_model(Trainer& trainer, const std::filesystem::path& folder) {
  const ModelConfig config = load_config(folder);
  if (ModelConfig mine = trainer.options().model; mine != config) {
    mine.context = config.context;  // says nothing about the weights
    if (mine != config)
      fail_f(
          "the model in {} has other sizes than the one to be trained: leave out --config "
          "and options that change its sizes",
          folder.string());
  }
  std::vector<float> weights(trainer.map().size());
  load_weights(trainer.map(), folder, weights);
  trainer.write(Trainer::State::weights, weights);
}

std::filesystem::path save_state(Trainer& trainer, const std::filesystem::path& root,
                                 const SaveOptions& how) {
  const auto weights = read(trainer, Trainer::State::weights);
  const auto m = read(trainer, Trainer::State::m), v = read(trainer, Trainer::State::v);
  TrainingFiles training;
  training.optimizer = named<const float>(trainer.map(), m, "m.");
  for (auto& tensor : named<const float>(trainer.map(), v, "v."))
    training.optimizer.push_back(tensor);
  training.progress = {{"step", trainer.steps()},
                       {"settings", settings(trainer, how.seed)},
                       {"options", how.options},
                       {"conditions", conditions_of(trainer)}};
  const ModelFiles model{.config = trainer.options().model,
                         .weights = named<const float>(trainer.map(), weights),
                         .tokenizer = how.tokenizer};
  return CheckpointFolder(root).save(trainer.steps(), model, training, how.keep);
}

Json load_state(Trainer& trainer, const std::filesystem::path& checkpoint, uint64_t seed) {
  load_model(trainer, checkpoint);
  std::vector<float> m(trainer.map().size()), v(m.size());
  auto moments = named<float>(trainer.map(), m, "m.");
  for (auto& tensor : named<float>(trainer.map(), v, "v.")) moments.push_back(tensor);
  const Json progress = load_training(checkpoint, moments);
  const std::string where = (checkpoint / "training.json").string();
  constexpr uint64_t kMostSteps = uint64_t{1} << 40;
  if (!progress.contains("step") || !progress["step"].is_number_unsigned() ||
      progress["step"] > kMostSteps)
    fail_f("{} does not say which step it is of: start anew, without --resume", where);
  const Json mine = settings(trainer, seed);
  const Json made_with = progress.value("settings", Json());
  if (!made_with.is_object())
    fail_f("{} does not say with which settings it was made: start anew, without --resume", where);
  for (const auto& [key, value] : mine.items()) {
    const Json theirs = made_with.value(key, Json());
    if (theirs != value)
      fail_f("cannot resume from {}: it was made with {} {}, and this run has {}",
             checkpoint.string(), key, theirs.dump(), value.dump());
  }
  trainer.write(Trainer::State::m, m);
  trainer.write(Trainer::State::v, v);
  trainer.set_steps(progress["step"].get<int64_t>());
  return progress.value("conditions", Json());
}

}  // namespace cria
