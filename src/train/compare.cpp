#include "train/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json.h"
#include "base/quantile.h"
#include "base/table.h"
#include "runtime/event.h"

namespace cria {
namespace {

double median(const std::vector<double>& values) {
  return values.empty() ? 0 : quantile(values, 0.5);
}

PlanFigures run_plan(const CompareOptions& options, const std::string& plan,
                     const BatchSource& batches, const CompareProgress& progress) {
  TrainerOptions how = options.trainer;
  how.plan = plan;
  auto trainer = make_trainer(how);
  trainer->initialise(options.seed);
  PlanFigures out{.plan = plan};
  std::vector<double> steps, forward, backward, optimizer;
  const size_t rows = size_t(how.batch) * how.seq;
  std::vector<int32_t> tokens(rows * how.accumulate), targets(tokens.size());
  std::vector<HostBatch> micro(how.accumulate);
  Event start(how.device), end(how.device);
  for (int step = 0; step <= options.steps + 1; ++step) {
    for (int i = 0; i < how.accumulate; ++i) {
      const auto t = std::span(tokens).subspan(i * rows, rows);
      const auto y = std::span(targets).subspan(i * rows, rows);
      batches(int64_t{step} * how.accumulate + i, t, y);
      micro[i] = {t, y};
    }
    progress(plan, step, options.steps + 2);
    if (step == 0) {
      out.record = trainer->record_step(micro, options.learning_rate, Recorder::Mode::count);
      out.losses.push_back(trainer->loss());
      continue;
    }
    start.record(trainer->stream());
    trainer->step(micro, options.learning_rate);
    end.record(trainer->stream());
    out.losses.push_back(trainer->loss());
    if (options.stop && *options.stop) break;
    if (step == 1) continue;  // captures the graph
    steps.push_back(elapsed_us(start, end) * 1e-3);
    const StepTimes times = trainer->times();
    forward.push_back(times.forward_ms);
    backward.push_back(times.backward_ms);
    optimizer.push_back(times.optimizer_ms);
  }
  out.step_ms = median(steps);
  if (!steps.empty()) out.spread = (quantile(steps, 0.75) - quantile(steps, 0.25)) / out.step_ms;
  out.times = {median(forward), median(backward), median(optimizer)};
  if (out.step_ms > 0) {
    out.samples_per_s = 1e3 * how.batch * how.accumulate / out.step_ms;
    out.tokens_per_s = out.samples_per_s * how.seq;
  }
  out.memory = trainer->memory();
  if (options.time_launches)
    out.record = trainer->record_step(micro, options.learning_rate, Recorder::Mode::time);
  return out;
}

}  // namespace

std::vector<PlanFigures> compare_plans(const CompareOptions& options, const BatchSource& batches,
                                       const CompareProgress& progress) {
  std::vector<PlanFigures> out;
  for (const std::string& plan : options.plans) {
    if (options.stop && *options.stop) break;
    out.push_back(run_plan(options, plan, batches, progress));
    if (out.back().step_ms > 0) out.back().speedup = out.front().step_ms / out.back().step_ms;
  }
  return out;
}

std::string to_table(const std::vector<PlanFigures>& figures) {
  Table table({{"plan", Table::Align::left},
               {"loss"},
               {"ms/step"},
               {"±%"},
               {"forward"},
               {"backward"},
               {"optimizer"},
               {"samples/s"},
               {"tokens/s"},
               {"MiB"},
               {"launches/block"},
               {"/step"},
               {"GB moved"},
               {"speed-up"}});
  for (const PlanFigures& f : figures)
    table.add_row(
        {f.plan, fmt::format("{:.5f}", f.losses.empty() ? 0 : f.losses.back()),
         fmt::format("{:.3f}", f.step_ms), fmt::format("{:.1f}", 50 * f.spread),
         fmt::format("{:.3f}", f.times.forward_ms), fmt::format("{:.3f}", f.times.backward_ms),
         fmt::format("{:.3f}", f.times.optimizer_ms), fmt::format("{:.1f}", f.samples_per_s),
         fmt::format("{:.0f}", f.tokens_per_s),
         fmt::format("{:.0f}", double(f.memory.total()) / (1 << 20)),
         fmt::format("{} + {}", f.record.block_forward, f.record.block_backward),
         fmt::format("{}", f.record.count()), fmt::format("{:.2f}", f.record.cost().bytes() * 1e-9),
         fmt::format("{:.2f}x", f.speedup)});
  return table.to_string();
}

std::string to_kernel_table(const PlanFigures& figures) {
  struct Sum {
    int count = 0;
    double us = 0;
    Cost cost;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  double total = 0;
  for (const LaunchRecord& l : figures.record.launches) {
    Sum& sum = sums[{l.name, l.config}];
    sum.count += l.launches, sum.us += l.time_us, sum.cost += l.cost;
    total += l.time_us;
  }
  std::vector<std::pair<std::pair<std::string, std::string>, Sum>> rows(sums.begin(), sums.end());
  std::ranges::stable_sort(rows, [](auto& a, auto& b) { return a.second.us > b.second.us; });
  Table table({{"kernel", Table::Align::left},
               {"configuration", Table::Align::left},
               {"launches"},
               {"us"},
               {"us each"},
               {"share [%]"},
               {"GB/s"},
               {"TFLOP/s"}});
  for (const auto& [name, sum] : rows)
    table.add_row({name.first, name.second, fmt::format("{}", sum.count),
                   fmt::format("{:.0f}", sum.us), fmt::format("{:.2f}", sum.us / sum.count),
                   fmt::format("{:.1f}", 100 * sum.us / total),
                   fmt::format("{:.0f}", sum.cost.bytes() / sum.us * 1e-3),
                   fmt::format("{:.1f}", sum.cost.flops / sum.us * 1e-6)});
  double products = 0;
  for (const auto& [name, sum] : rows) products += name.first == "product" ? sum.us : 0;
  std::string out = table.to_string();
  if (products > 0)
    out += fmt::format("library products take {:.1f} ms; everything else adds {:.1f} %\n",
                       products * 1e-3, 100 * (total / products - 1));
  return out;
}

Json to_json(const std::vector<PlanFigures>& figures) {
  Json out = Json::array();
  for (const PlanFigures& f : figures)
    out.push_back({{"plan", f.plan},
                   {"losses", f.losses},
                   {"step_ms", f.step_ms},
                   {"spread", f.spread},
                   {"forward_ms", f.times.forward_ms},
                   {"backward_ms", f.times.backward_ms},
                   {"optimizer_ms", f.times.optimizer_ms},
                   {"samples_per_s", f.samples_per_s},
                   {"tokens_per_s", f.tokens_per_s},
                   {"memory_bytes",
                    {{"weights", f.memory.weights},
                     {"gradients", f.memory.gradients},
                     {"optimizer", f.memory.optimizer},
                     {"activations", f.memory.activations},
                     {"workspace", f.memory.workspace},
                     {"total", f.memory.total()}}},
                   {"launches_per_block",
                    {{"forward", f.record.block_forward}, {"backward", f.record.block_backward}}},
                   {"launches_per_step", f.record.count()},
                   {"bytes_moved", f.record.cost().bytes()},
                   {"flops", f.record.cost().flops},
                   {"speedup", f.speedup}});
  return out;
}

}  // namespace cria
