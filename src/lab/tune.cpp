#include "lab/tune.h"

#include <algorithm>

#include "base/format.h"

namespace cria {
namespace {

const BenchRow* fastest_of(const BenchResult& result, const std::string& variant) {
  const BenchRow* best = result.best(BenchRow::Kind::kernel, variant);
  if (!best)
    fail_f("no configuration of {} gives a right result here; please report this", variant);
  return best;
}

}  // namespace

std::vector<TuneResult> tune(const ProblemSpec& spec, const ProblemRequest& request,
                             const MeasureOptions& options) {
  const BenchResult measured = bench(spec, request, {.config = "all", .measure = options});
  ProblemRequest same = request;
  same.sets = 1;
  const std::unique_ptr<Problem> problem = make_problem(spec, same);

  std::vector<TuneResult> results;
  for (const Variant& variant : problem->variants()) {
    const KernelCall& call = variant.calls.at(0);
    const BenchRow* best = fastest_of(measured, variant.name);
    const std::string& untuned = untuned_config(problem->stream(), call).name;
    const auto start = std::find_if(
        measured.rows.begin(), measured.rows.end(),
        [&](const BenchRow& row) { return row.name == variant.name && row.config == untuned; });
    results.push_back({.kernel = call.kernel,
                       .default_config = untuned,
                       .winner = {device_key(request.device), call.kernel, call.dtype,
                                  shape_class(call.dims), best->config, best->timing.median_us()},
                       .gain = speed_ratio(best->timing, start->timing).median,
                       .measured = measured});
  }
  return results;
}

}  // namespace cria
