// Measures a problem: its kernels in one or all configurations, its rivals and its ceiling in turn,
// each result checked. The figures are kept as data; tables and JSON are views of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "lab/measure.h"
#include "lab/problem.h"

namespace cria {

// The fastest of a race were chosen by its samples, which flatter them: a final race judges them by
// new ones, of 21 rounds at least.
enum class FinalRace {
  none,
  rival,    // the fastest kernel and the fastest rival, alone
  ceiling,  // the fastest configuration of each kernel, and the ceiling
};

struct BenchOptions {
  std::string config = {};  // empty: the one a launch would choose; "all"; or a name
  MeasureOptions measure = {};
  std::optional<Ceiling> ceiling = {};  // instead of the problem's own
  FinalRace final_race = FinalRace::none;
};

struct BenchRow {
  enum class Kind { kernel, rival, ceiling };
  Kind kind = Kind::kernel;
  std::string name = {};
  std::string config = {};  // of a kernel
  Timing timing = {};
  double rate = 0;              // in BenchResult::unit, from the median
  Ratio of_ceiling = {};        // rate over the ceiling's
  Ratio over_rival = {};        // of a kernel: speed over the best rival's; zeros without rivals
  Accuracy accuracy = {};       // of kernels and rivals
  Timing final_timing = {};     // of the final race; no samples where it took no part
  Ratio final_of_ceiling = {};  // likewise; zeros without the ceiling
};

struct BenchResult {
  std::string problem = {};
  Device device = {};
  DType dtype = DType::f32;
  Sizes sizes = {};
  Cost cost = {};
  int sets = 1;           // of operands, taken in turn
  bool packed = false;    // ProblemRequest::packed
  std::string unit = {};  // GB/s or TFLOP/s
  std::vector<BenchRow> rows = {};
  Ratio final_over_rival = {};  // of the final race; zeros without one

  bool all_right() const;
  // The fastest row of a kind, and of this name unless it is empty, that is right; null when there
  // is none.
  const BenchRow* best(BenchRow::Kind kind, std::string_view name = {}) const;
};

BenchResult bench(const ProblemSpec& spec, const ProblemRequest& request,
                  const BenchOptions& options);

// One table; of many rivals only the best is shown unless `all_rivals`.
std::string to_table(const BenchResult& result, bool all_rivals = false);
Json to_json(const BenchResult& result);

}  // namespace cria
