#include "train/loop.h"

#include <chrono>
#include <cmath>

#include "base/format.h"
#include "model/checkpoint.h"
#include "plans/decoder.h"
#include "runtime/memory_use.h"
#include "train/conditions.h"
#include "train/generate.h"
#include "train/state.h"

namespace cria {
namespace {

using Clock = std::chrono::steady_clock;

class Run {
 public:
  Run(const RunOptions& options, const RunData& data, RunObserver& observer)
      : options_(options),
        data_(data),
        observer_(observer),
        peak_(options.trainer.device, PeakMemory::Since::process),
        trainer_(make_trainer(options.trainer)),
        tokens_(size_t(rows()) * options.trainer.accumulate),
        targets_(tokens_.size()) {}

  RunResult run() {
    begin();
    observer_.began(*trainer_, trainer_->steps());
    since_ = Clock::now();
    while (trainer_->steps() < options_.schedule.steps) {
      step();
      result_.stopped = stopping();
      if (result_.stopped) break;
    }
    if (trainer_->steps() > reported_) report();
    if (result_.stopped || trainer_->steps() > saved_) save();
    if (!result_.stopped && options_.validate_every > 0 && trainer_->steps() > validated_)
      validate();
    result_.step = trainer_->steps();
    return result_;
  }

 private:
  bool stopping() const { return options_.stop && *options_.stop; }
  int rows() const { return options_.trainer.batch * options_.trainer.seq; }
  static bool due(int64_t every, int64_t steps) { return every > 0 && steps % every == 0; }
  bool due(int64_t every) const { return due(every, trainer_->steps()); }
  // Whether there is a report after this many steps: its phases must be timed.
  bool reports(int64_t steps) const {
    return due(options_.report_every, steps) || due(options_.save_every, steps) ||
           steps == options_.schedule.steps;
  }

  void begin() {
    if (!std::isfinite(options_.schedule.peak) || options_.schedule.peak < 0)
      fail_f("a learning rate of {} teaches nothing", options_.schedule.peak);
    if (samples()) {
      prompt_ = prompt_tokens(*data_.tokenizer, options_.sample_prompt);
      if (std::ssize(prompt_) >= options_.trainer.model.context)
        fail_f("the prompt for samples has {} tokens, and the model's context is {}: shorten it",
               prompt_.size(), options_.trainer.model.context);
    }
    // An unusable folder should be known before the work, not after it.
    const CheckpointFolder folder(options_.out);
    if (!options_.out.empty()) {
      folder.prepare();
      lock_ = folder.lock();
    }
    const auto latest = options_.out.empty() ? std::nullopt : folder.latest();
    if (latest && !options_.resume)
      fail_f("{} holds the checkpoints of a run: go on with --resume, or choose another --out",
             options_.out.string());
    if (latest)
      made_under_ = load_state(*trainer_, *latest, options_.seed);
    else if (!options_.start.empty())
      load_model(*trainer_, options_.start);
    else
      trainer_->initialise(options_.seed);
    fresh_ = !latest && options_.start.empty();
    reported_ = saved_ = trainer_->steps();
  }

  // Data that cannot be read any more ends the run; what it has learnt until then is kept.
  template <class Batches>
  auto read(const Batches& data, uint64_t number, std::span<int32_t> tokens,
            std::span<int32_t> targets) {
    try {
      return data(number, tokens, targets);
    } catch (const Error& error) {
      if (options_.out.empty() || trainer_->steps() == 0) throw;
      check(trainer_->loss());
      if (trainer_->steps() > saved_) keep();
      fail_f("{}; step {} is saved, and --resume goes on from there", error.what(), saved_);
    }
  }

  // The i-th batch of a step.
  HostBatch batch(int64_t step, int i) {
    const auto tokens = std::span(tokens_).subspan(size_t(i) * rows(), rows());
    const auto targets = std::span(targets_).subspan(size_t(i) * rows(), rows());
    read(data_.training, uint64_t(step) * options_.trainer.accumulate + i, tokens, targets);
    return {tokens, targets};
  }

  void step() {
    const int64_t number = trainer_->steps();
    std::vector<HostBatch> batches;
    for (int i = 0; i < options_.trainer.accumulate; ++i) batches.push_back(batch(number, i));
    rate_ = options_.schedule.rate(number);
    trainer_->step(batches, rate_, reports(number + 1));
    if (fresh_ && number == 0)
      observer_.first_loss(trainer_->loss(), std::log(double(options_.trainer.model.vocab)));
    compare_conditions();
    if (reports(trainer_->steps())) report();
    if (due(options_.validate_every)) validate();
    if (samples() && due(options_.sample_every)) sample();
    if (due(options_.save_every)) save();
  }

  // Once, when all conditions are known.
  void compare_conditions() {
    if (made_under_.is_null()) return;
    const std::string differing = differences(made_under_, conditions_of(*trainer_));
    made_under_ = {};
    if (!differing.empty())
      observer_.warned(fmt::format(
          "what is learnt from here on may differ in the last bits from an uninterrupted run, as "
          "the checkpoint was made under other conditions: {}",
          differing));
  }

  void report() {
    const double loss = trainer_->loss();
    check(loss);
    const int64_t steps = trainer_->steps() - reported_;
    if (steps == 0) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - since_).count();
    const double samples = double(options_.trainer.batch) * options_.trainer.accumulate;
    const double samples_per_s = samples * double(steps) / seconds;
    observer_.stepped({.step = trainer_->steps(),
                       .steps = options_.schedule.steps,
                       .loss = loss,
                       .learning_rate = rate_,
                       .gradient_norm = trainer_->gradient_norm(),
                       .step_ms = 1e3 * seconds / double(steps),
                       .samples_per_s = samples_per_s,
                       .tokens_per_s = samples_per_s * options_.trainer.seq,
                       .times = trainer_->times(),
                       .memory = trainer_->memory(),
                       .peak_bytes = peak_.bytes()});
    result_.loss = loss;
    reported_ = trainer_->steps();
    since_ = Clock::now();
  }

  // Time that is not the steps' own.
  class Pause {
   public:
    explicit Pause(Run& run) : run_(run) {
      run_.trainer_->stream().synchronize();
      start_ = Clock::now();
    }
    ~Pause() { run_.since_ += Clock::now() - start_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Run& run_;
    Clock::time_point start_;
  };

  void check(double loss) {
    if (first_loss_ == 0) first_loss_ = loss;
    constexpr double kExploded = 4;  // times the first loss
    if (std::isfinite(loss) && loss <= kExploded * std::max(first_loss_, 1.0)) return;
    const std::string kept =
        saved_ > 0 && !options_.out.empty()
            ? fmt::format("the checkpoint of step {} in {} is kept", saved_, options_.out.string())
            : std::string("no checkpoint had been saved yet");
    fail_f(
        "training has diverged: the loss is {} after step {} (it began at {:.3f}); {}. Try a lower "
        "--lr, a longer --warmup, or --clip 1",
        loss, trainer_->steps(), first_loss_, kept);
  }

  void validate() {
    const Pause pause(*this);
    double sum = 0;
    int64_t sequences = 0;
    const auto tokens = std::span(tokens_).first(rows()),
               targets = std::span(targets_).first(rows());
    for (uint64_t i = 0; i < options_.validation_batches; ++i) {
      if (stopping()) return;
      const int counted = read(data_.validation, i, tokens, targets);
      sum += counted * trainer_->evaluate({tokens, targets}, counted);
      sequences += counted;
    }
    result_.validation_loss = sum / double(sequences);
    validated_ = trainer_->steps();
    observer_.validated(trainer_->steps(), result_.validation_loss);
  }

  bool samples() const { return options_.sample_every > 0 && data_.tokenizer; }

  void sample() {
    const Pause pause(*this);
    const int64_t most = std::ssize(prompt_) + options_.sample_tokens;
    const ModelConfig& model = options_.trainer.model;
    const auto decoder =
        make_decoder({.model = model,
                      .device = options_.trainer.device,
                      .dtype = options_.trainer.dtype,
                      .capacity = static_cast<int>(std::min<int64_t>(most, model.context))},
                     trainer_->map(),
                     [&](std::span<float> flat) { trainer_->read(Trainer::State::weights, flat); });
    TokenSampler sampler({.seed = options_.seed + uint64_t(trainer_->steps())});
    const auto tokens = generate(*decoder, sampler, prompt_, options_.sample_tokens,
                                 data_.tokenizer->ends(), [this](int32_t) { return !stopping(); });
    peak_.bytes();  // while the decoder is there
    observer_.sampled(trainer_->steps(), options_.sample_prompt + data_.tokenizer->decode(tokens));
  }

  // The loss of a step is that of the weights before it; what is kept must know better, at least
  // on the batch that it has just seen.
  void save() {
    if (options_.out.empty()) return;
    const Pause pause(*this);
    check(trainer_->loss());
    if (trainer_->steps() > 0) check(trainer_->evaluate(batch(trainer_->steps() - 1, 0)));
    keep();
  }

  void keep() {
    const auto place = save_state(*trainer_, options_.out,
                                  {.seed = options_.seed,
                                   .keep = options_.keep,
                                   .tokenizer = data_.tokenizer,
                                   .options = options_.options});
    saved_ = trainer_->steps();
    observer_.saved(saved_, place);
  }

  const RunOptions& options_;
  const RunData& data_;
  std::optional<FileLock> lock_;  // of the folder of checkpoints
  RunObserver& observer_;
  PeakMemory peak_;
  std::unique_ptr<Trainer> trainer_;
  std::vector<int32_t> tokens_, targets_;
  std::vector<int32_t> prompt_;  // of samples
  Clock::time_point since_;
  bool fresh_ = false;  // neither a checkpoint nor a model to begin from
  Json made_under_;     // the conditions of the checkpoint that this run goes on from
  int64_t reported_ = 0, saved_ = 0, validated_ = 0;
  double first_loss_ = 0;
  float rate_ = 0;
  RunResult result_;
};

}  // namespace

RunResult run_training(const RunOptions& options, const RunData& data, RunObserver& observer) {
  return Run(options, data, observer).run();
}

}  // namespace cria
