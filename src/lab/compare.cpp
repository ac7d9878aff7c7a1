#include "lab/compare.h"

#include <algorithm>
#include <memory>
#include <span>

#include "model/resize.h"
#include "runtime/event.h"
#include "runtime/memory_use.h"

namespace cria {
namespace {

// Steps put into the stream before the host waits for them: as in training, the queue is not empty
// when a step begins.
constexpr int kStepsInFlight = 10;

// How many steps are timed, and how many of them are a turn.
struct Pace {
  int steps, turn;
};

// On a CPU nothing is queued: there a turn is long enough that it hardly matters what the others
// have left in the caches.
Pace pace_of(const CompareOptions& options, double step_ms) {
  constexpr double kTurnMs = 20, kPlanMs = 1500;
  constexpr int kLeastTurns = 5, kMostSteps = 200, kStepsOnCuda = 50;
  const bool cuda = options.trainer.device.backend == Backend::cuda;
  const auto fitting = [&](double ms, int least, int most) {
    return static_cast<int>(std::clamp<double>(ms / step_ms, least, most));
  };
  int steps = options.steps;
  if (steps == 0) steps = cuda ? kStepsOnCuda : fitting(kPlanMs, kLeastTurns, kMostSteps);
  const int turn = cuda ? kStepsInFlight : fitting(kTurnMs, 1, kStepsInFlight);
  return {steps, std::clamp(steps / kLeastTurns, 1, turn)};
}

// What takes part, by the name it has in the table.
struct Entrant {
  std::string name;
  TrainerOptions how;
};

std::vector<Entrant> entrants_of(const CompareOptions& options) {
  constexpr int kRowBytes = 16;
  std::vector<Entrant> out;
  for (const std::string& plan : options.plans) {
    out.push_back({plan, options.trainer});
    out.back().how.plan = plan;
  }
  if (options.rounded) {
    out.push_back(out.back());
    Entrant& last = out.back();
    last.name += " rounded";
    last.how.model =
        round_widths(last.how.model, kRowBytes / static_cast<int>(size_of(last.how.dtype)));
  }
  return out;
}

// One plan in training.
class PlanRun {
 public:
  PlanRun(const CompareOptions& options, const Entrant& entrant, const BatchSource& batches,
          const CompareProgress& progress)
      : options_(options),
        how_(entrant.how),
        batches_(batches),
        progress_(progress),
        peak_(how_.device),
        trainer_(make_trainer(how_)),
        tokens_(rows() * how_.accumulate),
        targets_(tokens_.size()),
        micro_(how_.accumulate),
        out_{.plan = entrant.name} {
    trainer_->initialise(options.seed);
    for (int i = 0; i <= kStepsInFlight; ++i) marks_.emplace_back(how_.device);
  }

  // The steps before those that are timed, while no other plan runs: launch by launch, then as they
  // will be timed. On CUDA each captures its graph.
  void warm_up() {
    if (stopped()) return;
    peak_.restart();
    next_batch();
    out_.record = trainer_->record_step(micro_, options_.learning_rate, Recorder::Mode::count);
    out_.losses.push_back(trainer_->loss());
    for (const bool timed : {false, true}) {
      if (stopped()) return;
      if (!timed && how_.device.backend == Backend::cpu) continue;  // there is no graph
      next_batch();
      marks_[0].record(trainer_->stream());
      trainer_->step(micro_, options_.learning_rate, timed);
      marks_[1].record(trainer_->stream());
      out_.losses.push_back(trainer_->loss());
    }
    first_ms_ = elapsed_us(marks_[0], marks_[1]) * 1e-3;
    out_.peak_bytes = peak_.bytes();
    out_.memory = trainer_->memory();
  }
  Pace pace() const { return pace_of(options_, first_ms_); }

  // The next turn; false when the plan was stopped in it, and nothing of it counts.
  bool take_turn(const Pace& pace) {
    const int count = std::min(pace.turn, pace.steps - timed_);
    all_steps_ = static_cast<int>(trainer_->steps()) + pace.steps - timed_;
    marks_[0].record(trainer_->stream());
    for (int done = 0; done < count;) {
      if (stopped()) return false;
      next_batch();
      trainer_->step(micro_, options_.learning_rate, ++done == count);
      marks_[done].record(trainer_->stream());
    }
    Turn turn{.loss = trainer_->loss()};  // waits for all
    if (stopped()) return false;
    for (int i = 0; i < count; ++i) turn.ms.push_back(elapsed_us(marks_[i], marks_[i + 1]) * 1e-3);
    turn.times = trainer_->times();
    turns_.push_back(std::move(turn));
    timed_ += count;
    return true;
  }
  bool finished(const Pace& pace) const { return timed_ >= pace.steps; }
  int turns() const { return static_cast<int>(ssize(turns_)); }

  // Of the first so many turns.
  PlanFigures figures(int turns) {
    if (options_.time_launches && !stopped()) {
      next_batch();
      out_.record = trainer_->record_step(micro_, options_.learning_rate, Recorder::Mode::time);
    }
    out_.choices = trainer_->choices();
    std::vector<double> steps, forward, backward, optimizer;
    for (const Turn& turn : std::span(turns_).first(turns)) {
      steps.insert(steps.end(), turn.ms.begin(), turn.ms.end());
      out_.turns.samples_us.push_back(1e3 * quantile(turn.ms, 0.5));
      out_.losses.push_back(turn.loss);
      forward.push_back(turn.times.forward_ms);
      backward.push_back(turn.times.backward_ms);
      optimizer.push_back(turn.times.optimizer_ms);
    }
    out_.step_ms = quantile(steps, 0.5);
    out_.spread = (quantile(steps, 0.75) - quantile(steps, 0.25)) / out_.step_ms;
    out_.times = {quantile(forward, 0.5), quantile(backward, 0.5), quantile(optimizer, 0.5)};
    out_.samples_per_s = 1e3 * how_.batch * how_.accumulate / out_.step_ms;
    out_.tokens_per_s = out_.samples_per_s * how_.seq;
    return std::move(out_);
  }

 private:
  size_t rows() const { return size_t(how_.batch) * how_.seq; }
  bool stopped() const { return options_.stop && *options_.stop; }

  void next_batch() {
    const int64_t step = trainer_->steps();
    progress_(out_.plan, static_cast<int>(step), all_steps_);
    for (int i = 0; i < how_.accumulate; ++i) {
      const auto t = std::span(tokens_).subspan(i * rows(), rows());
      const auto y = std::span(targets_).subspan(i * rows(), rows());
      batches_(step * how_.accumulate + i, t, y);
      micro_[i] = {t, y};
    }
  }

  const CompareOptions& options_;
  const TrainerOptions how_;
  const BatchSource& batches_;
  const CompareProgress& progress_;
  PeakMemory peak_;
  std::unique_ptr<Trainer> trainer_;
  std::vector<int32_t> tokens_, targets_;
  std::vector<HostBatch> micro_;
  std::vector<Event> marks_;
  struct Turn {
    std::vector<double> ms = {};  // of each step
    double loss = 0;              // of the last one, as are the times
    StepTimes times = {};
  };
  std::vector<Turn> turns_;
  int timed_ = 0;  // steps of all turns
  double first_ms_ = 0;
  int all_steps_ = 0;
  PlanFigures out_;
};

class Comparer {
 public:
  Comparer(const CompareOptions& options, const BatchSource& batches,
           const CompareProgress& progress)
      : options_(options),
        entrants_(entrants_of(options)),
        batches_(batches),
        progress_(progress) {}

  Comparison run() {
    out_.free_bytes =
        options_.free_bytes ? *options_.free_bytes : memory_use(options_.trainer.device).free;
    for (const Entrant& e : entrants_) out_.needed_bytes += planned_memory(e.how).total();
    // What the libraries ask for is not planned.
    out_.in_turn =
        entrants_.size() == 1 || out_.needed_bytes + out_.needed_bytes / 8 <= out_.free_bytes;
    out_.in_turn ? run_in_turn() : run_one_after_another();
    for (PlanFigures& f : out_.plans) f.speedup = speed_ratio(f.turns, out_.plans[0].turns);
    return std::move(out_);
  }

 private:
  bool stopped() const { return options_.stop && *options_.stop; }
  std::unique_ptr<PlanRun> begin(const Entrant& entrant) {
    auto run = std::make_unique<PlanRun>(options_, entrant, batches_, progress_);
    run->warm_up();
    return run;
  }

  void run_in_turn() {
    std::vector<std::unique_ptr<PlanRun>> runs;
    for (const Entrant& entrant : entrants_) {
      if (stopped()) return;
      runs.push_back(begin(entrant));
    }
    if (stopped() || runs.empty()) return;
    const Pace pace = runs[0]->pace();
    TurnOrder turns(runs.size());
    int rounds = 0;
    const auto round = [&] {
      for (const size_t i : turns.next())
        if (!runs[i]->take_turn(pace)) return false;
      return true;
    };
    while (!runs[0]->finished(pace) && round()) ++rounds;
    if (rounds == 0) return;
    for (const auto& run : runs) out_.plans.push_back(run->figures(rounds));
  }

  void run_one_after_another() {
    std::optional<Pace> pace;
    for (const Entrant& entrant : entrants_) {
      if (stopped()) return;
      const std::unique_ptr<PlanRun> run = begin(entrant);
      if (stopped()) return;
      if (!pace) pace = run->pace();
      while (!run->finished(*pace) && run->take_turn(*pace)) {
      }
      if (run->turns() > 0) out_.plans.push_back(run->figures(run->turns()));
    }
  }

  const CompareOptions& options_;
  const std::vector<Entrant> entrants_;
  const BatchSource& batches_;
  const CompareProgress& progress_;
  Comparison out_;
};

}  // namespace

Comparison compare_plans(const CompareOptions& options, const BatchSource& batches,
                         const CompareProgress& progress) {
  return Comparer(options, batches, progress).run();
}

}  // namespace cria
