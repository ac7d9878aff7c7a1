// Auto-tuning: every configuration of a kernel that can run a problem is checked and timed in turn
// with the others; the fastest right one is kept for all problems of the same shape class.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lab/bench.h"
#include "runtime/config_table.h"

namespace cria {

struct TuneResult {
  std::string kernel;
  std::string default_config;  // what is used without tuning
  TunedConfig winner;
  double gain = 1;       // speed of the winner over the default's
  BenchResult measured;  // all of them
};

// Tunes every kernel of the problem; nothing is written.
std::vector<TuneResult> tune(const ProblemSpec& spec, const ProblemRequest& request,
                             const MeasureOptions& options);

}  // namespace cria
