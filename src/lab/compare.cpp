#include "lab/compare.h"

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

// Steps put into the stream before the host waits for them: as in training, the queue is not empty
// when a step begins.
constexpr int kStepsInFlight = 10;

// One plan in training.
class PlanRun {
 public:
  PlanRun(const CompareOptions& options, const std::string& plan, const BatchSource& batches,
          const CompareProgress& progress)
      : options_(options),
        how_(with_plan(options.trainer, plan)),
        batches_(batches),
        progress_(progress),
        trainer_(make_trainer(how_)),
        tokens_(rows() * how_.accumulate),
        targets_(tokens_.size()),
        micro_(how_.accumulate),
        out_{.plan = plan} {
    trainer_->initialise(options.seed);
    for (int i = 0; i <= kStepsInFlight; ++i) marks_.emplace_back(how_.device);
  }

  PlanFigures run() {
    next_batch();
    out_.record = trainer_->record_step(micro_, options_.learning_rate, Recorder::Mode::count);
    out_.losses.push_back(trainer_->loss());
    for (const bool timed : {false, true}) {  // each captures its graph
      if (stopped()) break;
      next_batch();
      trainer_->step(micro_, options_.learning_rate, timed);
      out_.losses.push_back(trainer_->loss());
    }
    while (ssize(steps_) < options_.steps && !stopped()) run_some();
    summarise();
    if (options_.time_launches)
      out_.record = trainer_->record_step(micro_, options_.learning_rate, Recorder::Mode::time);
    return out_;
  }

 private:
  static TrainerOptions with_plan(TrainerOptions how, const std::string& plan) {
    how.plan = plan;
    return how;
  }
  size_t rows() const { return size_t(how_.batch) * how_.seq; }
  bool stopped() const { return options_.stop && *options_.stop; }

  void next_batch() {
    const int64_t step = trainer_->steps();
    for (int i = 0; i < how_.accumulate; ++i) {
      const auto t = std::span(tokens_).subspan(i * rows(), rows());
      const auto y = std::span(targets_).subspan(i * rows(), rows());
      batches_(step * how_.accumulate + i, t, y);
      micro_[i] = {t, y};
    }
    progress_(how_.plan, static_cast<int>(step), options_.steps + kWarmUp);
  }

  void run_some() {
    const int count =
        std::min<int>(kStepsInFlight, options_.steps - static_cast<int>(ssize(steps_)));
    int done = 0;
    marks_[0].record(trainer_->stream());
    while (done < count && !stopped()) {
      next_batch();
      trainer_->step(micro_, options_.learning_rate, done == count - 1);
      marks_[++done].record(trainer_->stream());
    }
    out_.losses.push_back(trainer_->loss());
    for (int i = 0; i < done; ++i) steps_.push_back(elapsed_us(marks_[i], marks_[i + 1]) * 1e-3);
    const StepTimes times = trainer_->times();
    forward_.push_back(times.forward_ms);
    backward_.push_back(times.backward_ms);
    optimizer_.push_back(times.optimizer_ms);
  }

  void summarise() {
    out_.step_ms = median(steps_);
    if (!steps_.empty())
      out_.spread = (quantile(steps_, 0.75) - quantile(steps_, 0.25)) / out_.step_ms;
    out_.times = {median(forward_), median(backward_), median(optimizer_)};
    if (out_.step_ms > 0) {
      out_.samples_per_s = 1e3 * how_.batch * how_.accumulate / out_.step_ms;
      out_.tokens_per_s = out_.samples_per_s * how_.seq;
    }
    out_.memory = trainer_->memory();
  }

  static constexpr int kWarmUp = 3;  // steps before those that are timed

  const CompareOptions& options_;
  const TrainerOptions how_;
  const BatchSource& batches_;
  const CompareProgress& progress_;
  std::unique_ptr<Trainer> trainer_;
  std::vector<int32_t> tokens_, targets_;
  std::vector<HostBatch> micro_;
  std::vector<Event> marks_;
  std::vector<double> steps_, forward_, backward_, optimizer_;
  PlanFigures out_;
};

}  // namespace

std::vector<PlanFigures> compare_plans(const CompareOptions& options, const BatchSource& batches,
                                       const CompareProgress& progress) {
  std::vector<PlanFigures> out;
  for (const std::string& plan : options.plans) {
    if (options.stop && *options.stop) break;
    PlanFigures figures = PlanRun(options, plan, batches, progress).run();
    if (figures.step_ms == 0) break;  // stopped before a step was timed
    out.push_back(std::move(figures));
    out.back().speedup = out.front().step_ms / out.back().step_ms;
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
