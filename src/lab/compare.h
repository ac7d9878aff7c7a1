// The plans side by side: the same weights, the same batches, one row of figures each.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "train/trainer.h"

namespace cria {

struct CompareOptions {
  TrainerOptions trainer;          // the plan is filled in
  std::vector<std::string> plans;  // in the order of the table; the first is the yardstick
  int steps = 10;                  // timed; some before them are not
  float learning_rate = 3e-4f;
  uint64_t seed = 0;
  bool time_launches = false;  // time each launch of one more step, for to_kernel_table
  const std::atomic<bool>* stop = nullptr;  // ends after the step in progress
};

struct PlanFigures {
  std::string plan;
  std::vector<double> losses = {};  // of the steps that were waited for, before their updates
  double step_ms = 0;               // median
  double spread = 0;                // (slowest - fastest) / median of the middle half of steps
  StepTimes times = {};             // medians
  double samples_per_s = 0, tokens_per_s = 0;
  TrainerMemory memory = {};
  StepRecord record = {};  // of a step outside the graph, timed if CompareOptions::time_launches
  double speedup = 1;      // over the first plan
};

// Batches by step, the same for each plan; tokens and targets have B T elements.
using BatchSource =
    std::function<void(int64_t step, std::span<int32_t> tokens, std::span<int32_t> targets)>;

// Called before a plan's steps begin, and after each.
using CompareProgress = std::function<void(const std::string& plan, int step, int steps)>;

// After a stop, only plans of which steps were timed.
std::vector<PlanFigures> compare_plans(const CompareOptions& options, const BatchSource& batches,
                                       const CompareProgress& progress);

std::string to_table(const std::vector<PlanFigures>& figures);
// Where a plan's step goes, by kernel and configuration, most time first.
std::string to_kernel_table(const PlanFigures& figures);

Json to_json(const std::vector<PlanFigures>& figures);

}  // namespace cria
