// Trainer: a model's weights, their gradients and moments, a plan, and the training step. On CUDA
// the whole step is captured once and replayed as a graph. The same seed and batches give the same
// bits.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "model/weights.h"
#include "plans/plan.h"
#include "runtime/device.h"
#include "runtime/recorder.h"

namespace cria {

struct AdamWOptions {
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float eps = 1e-8f;
  float weight_decay = 0.1f;  // of matrices, the embedding included
  float max_norm = 1;         // of all gradients together; 0 does not clip
};

struct TrainerOptions {
  ModelConfig model;
  std::string plan = "flash";
  Device device = kCpu;
  DType dtype = DType::f32;               // of activations, gradients and products: f32 or bf16
  Precision precision = Precision::full;  // of f32 products
  int batch = 1;
  int seq = 1;
  int accumulate = 1;      // batches per step
  bool recompute = false;  // see PlanSetup
  bool graph = true;       // replay the step as a graph, on CUDA
  float init_std = 0.02f;  // deviation of the first weights
  AdamWOptions adamw = {};
};

// B sequences of T tokens and what follows each token, in host memory.
struct HostBatch {
  std::span<const int32_t> tokens;   // [B T]
  std::span<const int32_t> targets;  // [B T]
};

struct StepTimes {
  double forward_ms = 0, backward_ms = 0, optimizer_ms = 0;
};

struct TrainerMemory {
  int64_t weights = 0;  // bytes: 4 each, in bf16 as two halves
  int64_t gradients = 0;
  int64_t optimizer = 0;    // moments
  int64_t activations = 0;  // and temporaries
  int64_t workspace = 0;    // of library products

  int64_t total() const { return weights + gradients + optimizer + activations + workspace; }
};

// What a step launched, in order.
struct StepRecord {
  std::vector<LaunchRecord> launches;
  int64_t block_forward = 0, block_backward = 0;  // launches of one block

  int64_t count() const {
    int64_t sum = 0;
    for (const LaunchRecord& l : launches) sum += l.launches;
    return sum;
  }
  Cost cost() const {
    Cost sum;
    for (const LaunchRecord& l : launches) sum += l.cost;
    return sum;
  }
};

class Trainer {
 public:
  virtual ~Trainer() = default;
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  const TrainerOptions& options() const { return options_; }
  const WeightMap& map() const { return map_; }
  Stream& stream() { return stream_; }
  int64_t steps() const { return steps_; }
  // The configurations that each kernel of the first step ran in; empty before it.
  using Configurations = std::map<std::string, std::set<std::string>>;
  const Configurations& configurations() const { return configurations_; }

  // One optimizer step on options().accumulate batches. It returns when the work is in the stream.
  // With `timed`, times() will know its phases; on a GPU the marks between them cost microseconds.
  virtual void step(std::span<const HostBatch> batches, float learning_rate,
                    bool timed = false) = 0;

  // Of the last step; these wait for it.
  virtual double loss() = 0;           // mean over its tokens, before the update
  virtual double gradient_norm() = 0;  // before clipping
  virtual StepTimes times() = 0;       // of the last step that was timed; zeros before there is one

  // The mean loss of a batch, or of its first `sequences`, nothing learned; what is said of the
  // last step stays.
  virtual double evaluate(const HostBatch& batch, std::optional<int> sequences = {}) = 0;

  // Runs the plan on a batch without the optimizer; `watch` sees every tensor, then every gradient.
  using Watch = std::function<void(const Made&)>;
  virtual void watch(const HostBatch& batch, const Watch& watch) = 0;

  // A step outside the graph, launch by launch.
  virtual StepRecord record_step(std::span<const HostBatch> batches, float learning_rate,
                                 Recorder::Mode mode) = 0;

  virtual TrainerMemory memory() const = 0;

  // What the plan has chosen for its stages so far (plans/choice.h).
  virtual const std::vector<Choice>& choices() const = 0;

  // The training state, flat arrays of map().size() elements: any part of one, from `begin` on.
  enum class State { weights, m, v };
  virtual void read(State which, std::span<float> out, int64_t begin = 0) = 0;
  virtual void write(State which, std::span<const float> values, int64_t begin = 0) = 0;
  void set_steps(int64_t steps) { steps_ = steps; }  // when resuming: Adam's bias correction counts

  // Weights from the seed, moments zero. Before it, all are zero.
  virtual void initialise(uint64_t seed) = 0;

 protected:
  explicit Trainer(const TrainerOptions& options);

  const TrainerOptions options_;
  const WeightMap map_;
  Stream stream_;
  int64_t steps_ = 0;
  Configurations configurations_;
};

std::unique_ptr<Trainer> make_trainer(const TrainerOptions& options);

// What the trainer of these options will take, without taking it; the workspace of products is not
// known before they run.
TrainerMemory planned_memory(const TrainerOptions& options);

}  // namespace cria
