#include "train/state.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "model/checkpoint.h"
#include "train/conditions.h"

namespace cria {
namespace {

// Elements in host memory at a time.
constexpr int64_t kPart = 1 << 20;

// Calls f(begin, count) for parts of where a tensor lies in the flat array.
template <class F>
void each_part(const WeightEntry& e, F&& f) {
  const int64_t extent = e.runs.extent();
  for (int64_t begin = 0; begin < extent; begin += kPart) f(begin, std::min(kPart, extent - begin));
}

// A trainer's state as the file's tensors, to be written.
std::vector<NamedTensor<const float>> tensors_of(Trainer& trainer, Trainer::State which,
                                                 const std::string& prefix = "") {
  std::vector<NamedTensor<const float>> out;
  for (const WeightEntry& e : trainer.map().entries())
    out.push_back(
        {prefix + e.name, e.shape, [&trainer, which, &e](const auto& take) {
           std::vector<float> values(std::min(kPart, e.runs.extent()));
           each_part(e, [&](int64_t begin, int64_t count) {
             trainer.read(which, std::span(values).first(count), e.offset + begin);
             int64_t start = -1, packed = 0;  // without the gaps: in the file there are none
             e.runs.each_within(begin, begin + count, [&](int64_t place, int64_t first, int64_t n) {
               if (start < 0) start = first;
               std::copy_n(values.data() + (place - begin), n, values.data() + packed);
               packed += n;
             });
             if (packed > 0) take(start, std::span<const float>(values).first(packed));
           });
         }});
  return out;
}

// The same, to be read into the trainer.
std::vector<NamedTensor<float>> places_of(Trainer& trainer, Trainer::State which,
                                          const std::string& prefix = "") {
  std::vector<NamedTensor<float>> out;
  for (const WeightEntry& e : trainer.map().entries())
    out.push_back({prefix + e.name, e.shape, [&trainer, which, &e](const auto& fill) {
                     std::vector<float> values;
                     each_part(e, [&](int64_t begin, int64_t count) {
                       values.assign(count, 0.f);
                       e.runs.each_within(
                           begin, begin + count, [&](int64_t place, int64_t first, int64_t n) {
                             fill(first, std::span(values).subspan(place - begin, n));
                           });
                       trainer.write(which, values, e.offset + begin);
                     });
                   }});
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

}  // namespace

void load_weights(const WeightMap& map, const std::filesystem::path& folder,
                  std::span<float> flat) {
  std::vector<NamedTensor<float>> tensors;
  for (const WeightEntry& e : map.entries())
    tensors.push_back({e.name, e.shape, flat.data() + e.offset, e.runs});
  load_weights(folder, tensors);
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
  load_weights(folder, places_of(trainer, Trainer::State::weights));
}

std::filesystem::path save_state(Trainer& trainer, const std::filesystem::path& root,
                                 const SaveOptions& how) {
  TrainingFiles training;
  training.optimizer = tensors_of(trainer, Trainer::State::m, "m.");
  for (auto& tensor : tensors_of(trainer, Trainer::State::v, "v."))
    training.optimizer.push_back(std::move(tensor));
  training.progress = {{"step", trainer.steps()},
                       {"settings", settings(trainer, how.seed)},
                       {"options", how.options},
                       {"conditions", conditions_of(trainer)}};
  const ModelFiles model{.config = trainer.options().model,
                         .weights = tensors_of(trainer, Trainer::State::weights),
                         .tokenizer = how.tokenizer};
  return CheckpointFolder(root).save(trainer.steps(), model, training, how.keep);
}

Json load_state(Trainer& trainer, const std::filesystem::path& checkpoint, uint64_t seed) {
  const Json progress = load_progress(checkpoint);
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
  load_model(trainer, checkpoint);
  auto moments = places_of(trainer, Trainer::State::m, "m.");
  for (auto& tensor : places_of(trainer, Trainer::State::v, "v."))
    moments.push_back(std::move(tensor));
  load_training(checkpoint, moments);
  trainer.set_steps(progress["step"].get<int64_t>());
  return progress.value("conditions", Json());
}

}  // namespace cria
