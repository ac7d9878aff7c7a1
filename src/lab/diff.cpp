#include "lab/diff.h"

#include <cmath>
#include <string_view>
#include <utility>

#include "base/dtype.h"
#include "base/rounding.h"

namespace cria {
namespace {

std::unique_ptr<Trainer> trainer_of(TrainerOptions options, const std::string& plan,
                                    uint64_t seed) {
  options.plan = plan;
  auto trainer = make_trainer(options);
  trainer->initialise(seed);
  return trainer;
}

TensorDifference compare(const KeptTensor& a, const KeptTensor& b, double bound) {
  TensorDifference out{.name = a.name, .rows = a.rows, .cols = a.cols, .bound = bound};
  double length = 0, error = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    const double difference = double(a.values[i]) - b.values[i];
    length += double(a.values[i]) * a.values[i];
    error += difference * difference;
  }
  out.norm = std::sqrt(length);
  out.relative = error == 0 ? 0 : std::sqrt(error / length);
  if (std::isnan(out.relative)) out.relative = INFINITY;
  return out;
}

constexpr std::string_view kGradient = "gradient of ";

// "layers.3" of a name with that in it, else nothing.
std::string block_of(const std::string& name) {
  const size_t begin = name.find("layers.");
  if (begin == std::string::npos) return "";
  return name.substr(begin, name.find('.', begin + 7) - begin);
}

// Gradients that went through a softmax, which takes from each term the mean of all: what is left
// is smaller than what was rounded.
bool is_of_queries_or_keys(const std::string& name) {
  return name.ends_with(".d_q") || name.ends_with(".d_k") || name.ends_with(".q_proj.weight") ||
         name.ends_with(".k_proj.weight");
}

}  // namespace

double stage_roundoff(DType dtype, Precision precision) {
  // Tensor cores may cut f32 operands to tf32's 10 bits instead of rounding them.
  return precision == Precision::tf32 ? 2 * kRoundoffTf32 : roundoff(dtype);
}

KeptTensor keep_tensor(Stream& stream, const Made& made) {
  KeptTensor out{made.name, made.rows, made.cols, {}};
  out.values.reserve(size_t(made.rows) * made.cols);
  with_dtype(made.dtype, [&]<class T>(T) {
    std::vector<T> run;
    made.runs.each([&](int64_t place, int64_t, int64_t count) {
      run.resize(count);
      stream.copy(run.data(), static_cast<const T*>(made.data) + place, count * sizeof(T));
      stream.synchronize();
      for (const T x : run) out.values.push_back(static_cast<float>(to_float(x)));
    });
  });
  return out;
}

void Comparison::expect(KeptTensor tensor) {
  std::string name = tensor.name;
  expected_.emplace(std::move(name), std::move(tensor));
}

void Comparison::add(const KeptTensor& made) {
  const auto found = expected_.find(made.name);
  if (found == expected_.end()) return;
  if (!made.name.starts_with(kGradient)) {
    stages_at_[made.name] = ++stages_;
    stages_at_[block_of(made.name)] = stages_;
  }
  differences_.push_back(compare(found->second, made, bound(made.name)));
}

double Comparison::bound(const std::string& name) const {
  const double stages = stages_behind(name);
  // In f32 either run is off by its bound at most.
  if (size_of(dtype_) > 2) return 2 * stages_bound(stage_roundoff(dtype_, precision_), stages);
  // About two roundings make a stage, and the two runs' errors are independent.
  const double one = roundings_bound(roundoff(dtype_), 2 * stages);
  return std::sqrt(2.0) * one * (is_of_queries_or_keys(name) ? 1.5 : 1);
}

// A weight's gradient has behind it what its block, or its end of the model, has in the backward
// pass.
double Comparison::stages_behind(const std::string& name) const {
  if (!name.starts_with(kGradient)) return stages_;
  std::string place = block_of(name);
  if (place.empty()) place = name.ends_with("embed_tokens.weight") ? "d_embedding" : "d_final_norm";
  const auto found = stages_at_.find(place);
  return found == stages_at_.end() ? stages_ : found->second;
}

std::vector<TensorDifference> diff_plans(TrainerOptions options, const std::string& plan,
                                         const std::string& against, uint64_t seed,
                                         const HostBatch& batch) {
  Comparison comparison(options.dtype, options.precision);
  {
    auto trainer = trainer_of(options, against, seed);
    trainer->watch(
        batch, [&](const Made& made) { comparison.expect(keep_tensor(trainer->stream(), made)); });
  }
  auto trainer = trainer_of(options, plan, seed);
  trainer->watch(batch,
                 [&](const Made& made) { comparison.add(keep_tensor(trainer->stream(), made)); });
  return comparison.take();
}

}  // namespace cria
