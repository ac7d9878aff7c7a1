// The plans side by side: the same weights, the same batches, one row of figures each. They take turns
// round by round where they fit into memory together, so that all see the same machine.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "lab/measure.h"
#include "train/trainer.h"

namespace cria {

struct CompareOptions {
  TrainerOptions trainer;          // the plan is filled in
  std::vector<std::string> plans;  // in the order of the table; the first is the yardstick
  bool rounded = false;  // after them, the last one on the model whose widths are whole 16 bytes
  int steps = 0;  // timed, of each plan; some before them are not. 0: as many as the pace allows
  float learning_rate = 3e-4f;
  uint64_t seed = 0;
  bool time_launches = true;  // time each launch of one more step, for what is said about kernels
  const std::atomic<bool>* stop = nullptr;  // ends after the step in progress
  std::optional<size_t> free_bytes = {};    // for all plans together; else what the device has
};

struct PlanFigures {
  std::string plan;                 // "flash rounded": on the model with rounded widths
  std::vector<double> losses = {};  // of the steps that were waited for, before their updates
  double step_ms = 0;               // median
  double spread = 0;                // (slowest - fastest) / median of the middle half of steps
  StepTimes times = {};             // medians
  double samples_per_s = 0, tokens_per_s = 0;
  TrainerMemory memory = {};  // as planned, with the workspace that products asked for
  int64_t peak_bytes = 0;     // measured, of this plan alone (runtime/memory_use.h)
  StepRecord record = {};     // of a step outside the graph, timed if CompareOptions::time_launches
  std::vector<Choice> choices = {};  // of the plan, where it chooses
  Timing turns = {};          // by round: the median step of each turn
  Ratio speedup = {1, 1, 1};  // over the first plan, within rounds
};

struct Comparison {
  std::vector<PlanFigures> plans;
  bool in_turn = true;  // else one after another, for want of memory
  size_t needed_bytes = 0, free_bytes = 0;
};

// Batches by step, the same for each plan; tokens and targets have B T elements.
using BatchSource =
    std::function<void(int64_t step, std::span<int32_t> tokens, std::span<int32_t> targets)>;

// Called before each step of a plan; `steps` is 0 as long as it is not known how many there will be.
using CompareProgress = std::function<void(const std::string& plan, int step, int steps)>;

// After a stop, what whole rounds have shown, or the plans that were timed if they do not take
// turns.
Comparison compare_plans(const CompareOptions& options, const BatchSource& batches,
                         const CompareProgress& progress);

// The main columns, which fit a terminal 100 characters wide, or with `wide` all of them; below them
// a sentence when the plans did not take turns.
std::string to_table(const Comparison& comparison, bool wide);
// What takes a step's time in each plan, and what that means for the others; empty without times.
std::string to_bounds(const Comparison& comparison);
// Where a plan's step goes, by kernel and configuration, most time first; under it which stages the
// plan runs by kernels of cria's own and which by library products, and why.
std::string to_kernel_table(const PlanFigures& figures);

// Of all plans, with the table of kernels where launches were timed.
Json to_json(const Comparison& comparison);

}  // namespace cria
