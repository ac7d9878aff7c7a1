// A training run: steps, validation, samples of text and checkpoints, from a start or a resume to
// the end. What it tells goes to an observer; it prints nothing itself.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

#include "base/json.h"
#include "model/tokenizer.h"
#include "train/schedule.h"
#include "train/trainer.h"

namespace cria {

// Any batch of the data, by its number: the same number gives the same batch.
using BatchByNumber =
    std::function<void(uint64_t number, std::span<int32_t> tokens, std::span<int32_t> targets)>;

// The same; gives how many of its sequences, the first, count.
using ValidationBatch =
    std::function<int(uint64_t number, std::span<int32_t> tokens, std::span<int32_t> targets)>;

struct RunOptions {
  TrainerOptions trainer;
  Schedule schedule;  // and how many steps
  uint64_t seed = 0;
  std::filesystem::path out = {};    // of checkpoints; empty: none are saved
  bool resume = false;               // go on from the latest checkpoint in `out`, if there is one
  std::filesystem::path start = {};  // a model's folder to take the first weights from
  Json options = Json::object();     // how the run was started, for checkpoints to tell
  int64_t save_every = 500;          // steps; 0: at the end only
  int keep = 2;                      // checkpoints
  int64_t report_every = 1;  // steps between looks at the loss, for which the device is waited for
  int64_t validate_every = 100;  // 0: never
  uint64_t validation_batches = 8;
  int64_t sample_every = 0;  // 0: never
  int sample_tokens = 200;
  std::string sample_prompt = "\n";  // must leave room in the model's context
  const std::atomic<bool>* stop =
      nullptr;  // ends the run after the step in progress, with a checkpoint
};

struct RunData {
  BatchByNumber training;
  ValidationBatch validation;
  const Tokenizer* tokenizer = nullptr;  // for samples, and kept beside the weights
};

struct StepReport {
  int64_t step = 0;   // 1 is the first
  int64_t steps = 0;  // of the run
  double loss = 0;
  double learning_rate = 0;
  double gradient_norm = 0;
  double step_ms = 0;  // wall clock per step since the last report
  double samples_per_s = 0, tokens_per_s = 0;
  StepTimes times;
  TrainerMemory memory;    // as planned
  int64_t peak_bytes = 0;  // measured (runtime/memory_use.h): on the CPU the whole process's
};

class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void began(const Trainer&, int64_t /*first_step*/) {}
  // Of the first step from fresh weights: a guess among the model's vocabulary loses its logarithm.
  virtual void first_loss(double /*loss*/, double /*of_a_guess*/) {}
  virtual void warned(const std::string& /*sentence*/) {}
  virtual void stepped(const StepReport&) {}
  virtual void validated(int64_t /*step*/, double /*loss*/) {}
  virtual void sampled(int64_t /*step*/, const std::string& /*text*/) {}
  virtual void saved(int64_t /*step*/, const std::filesystem::path&) {}
};

struct RunResult {
  int64_t step = 0;
  double loss = 0;             // of the last step that was looked at
  double validation_loss = 0;  // the last one; 0 without validation
  bool stopped = false;        // by RunOptions::stop
};

// An Error when the loss is no number or has exploded; checkpoints saved before stay.
RunResult run_training(const RunOptions& options, const RunData& data, RunObserver& observer);

}  // namespace cria
