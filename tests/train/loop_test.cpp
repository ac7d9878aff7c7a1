// Whole runs: resumed ones equal uninterrupted ones bit for bit, a stop saves, a divergence
// explains itself.
#include "train/loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <thread>

#include "model/checkpoint.h"
#include "runtime/kernel.h"
#include "runtime/on_device.h"
#include "train/data.h"
#include "train/state.h"

namespace cria::test {
namespace {

namespace fs = std::filesystem;

class Notes final : public RunObserver {
 public:
  std::map<int64_t, double> losses, validations;
  std::map<int64_t, std::string> samples;
  std::vector<int64_t> saves;
  std::atomic<bool> stop{false};
  int64_t stop_at = -1;
  bool stop_in_validation = false;
  std::vector<double> step_ms;
  std::vector<StepReport> reports;
  std::vector<double> first_losses;
  std::chrono::milliseconds batch_takes{0}, validation_takes{0};

  void first_loss(double loss, double of_a_guess) override { first_losses = {loss, of_a_guess}; }
  void stepped(const StepReport& r) override {
    reports.push_back(r);
    losses[r.step] = r.loss;
    step_ms.push_back(r.step_ms);
    if (r.step == stop_at) stop = true;
  }
  void validated(int64_t step, double loss) override {
    validations[step] = loss;
    std::this_thread::sleep_for(validation_takes);
  }
  void sampled(int64_t step, const std::string& text) override { samples[step] = text; }
  void saved(int64_t step, const fs::path&) override { saves.push_back(step); }
};

class LoopTest : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    folder_ = fs::temp_directory_path() / ("cria_loop_test_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  RunOptions options(int64_t steps) {
    const Preset& preset = find_preset("debug");
    return {.trainer = {.model = preset.model,
                        .device = device(),
                        .batch = preset.batch,
                        .seq = preset.seq},
            .schedule = {.peak = 1e-3f, .warmup = 3, .steps = steps},
            .seed = 4,
            .out = folder_,
            .save_every = 0,
            .validate_every = 0};
  }
  RunResult run(const RunOptions& o, Notes& notes) {
    const GeneratedData data(o.trainer.model.vocab, o.trainer.batch, o.trainer.seq, o.seed);
    RunOptions with_stop = o;
    with_stop.stop = &notes.stop;
    return run_training(with_stop,
                        {.training =
                             [&](uint64_t n, auto x, auto y) {
                               std::this_thread::sleep_for(notes.batch_takes);
                               data.fill_batch(n, Split::train, x, y);
                             },
                         .validation =
                             [&](uint64_t n, auto x, auto y) {
                               if (notes.stop_in_validation) notes.stop = true;
                               return data.fill_batch(n, Split::validation, x, y);
                             },
                         .tokenizer = tokenizer_.get()},
                        notes);
  }

  fs::path folder_;
  std::unique_ptr<Tokenizer> tokenizer_ = make_byte_tokenizer();
};
INSTANTIATE_TEST_SUITE_P(Backends, LoopTest, every_backend(), backend_name);

TEST_P(LoopTest, ResumesBitForBit) {
  struct Case {
    DType dtype;
    int accumulate;
    bool odd = false;  // widths of rows and heads, which then have gaps behind them in memory
  };
  for (const auto& [dtype, accumulate, odd] : {Case{DType::f32, 1},
                                               {DType::f32, 2},
                                               {DType::bf16, 1},
                                               {DType::bf16, 2},
                                               {DType::f32, 1, true},
                                               {DType::bf16, 1, true}}) {
    if (!kernel_registry().find("adamw", dtype, target_of(device()))) continue;
    fs::remove_all(folder_);
    RunOptions o = options(12);
    if (ModelConfig& c = o.trainer.model; odd) c.dim = 67, c.head_dim = 10, c.ffn = 171;
    o.trainer.dtype = dtype, o.trainer.accumulate = accumulate;
    Notes whole, first, second;
    run(o, whole);
    fs::remove_all(folder_);
    first.stop_at = 5;
    const RunResult stopped = run(o, first);
    EXPECT_TRUE(stopped.stopped);
    EXPECT_EQ(stopped.step, 5);
    EXPECT_EQ(first.saves, std::vector<int64_t>{5});
    o.resume = true;
    run(o, second);
    EXPECT_EQ(second.losses.begin()->first, 6);
    for (const auto& [step, loss] : whole.losses)
      EXPECT_EQ(loss, step <= 5 ? first.losses.at(step) : second.losses.at(step))
          << "step " << step << " in " << name_of(dtype);
  }
}

TEST_P(LoopTest, LearnsTheGeneratedText) {
  RunOptions o = options(120);
  o.schedule.peak = 5e-3f;
  o.validate_every = 60;
  Notes notes;
  const RunResult result = run(o, notes);
  EXPECT_LT(result.loss, 0.6 * notes.losses.at(1));
  EXPECT_LT(notes.validations.at(120), notes.validations.at(60));
}

// The mean over all sequences does not depend on how they are cut into batches.
TEST_P(LoopTest, EveryValidationSequenceWeighsTheSame) {
  std::vector<double> losses;
  for (const int batch : {1, 50}) {
    RunOptions o = options(1);
    o.out.clear();
    o.schedule.peak = 0;
    o.validate_every = 1;
    o.trainer.batch = batch;
    const GeneratedData data(o.trainer.model.vocab, batch, o.trainer.seq, o.seed);
    o.validation_batches = data.validation_batches();
    Notes notes;
    losses.push_back(run(o, notes).validation_loss);
  }
  EXPECT_NEAR(losses[0], losses[1], 1e-5);
}

TEST_P(LoopTest, SavesAndSamplesWhenItShould) {
  RunOptions o = options(7);
  o.save_every = 3, o.sample_every = 4, o.sample_tokens = 9, o.sample_prompt = "ab";
  Notes notes;
  run(o, notes);
  EXPECT_EQ(notes.saves, (std::vector<int64_t>{3, 6, 7}));
  ASSERT_EQ(notes.samples.size(), 1u);
  EXPECT_EQ(notes.samples.at(4).substr(0, 2), "ab");
  EXPECT_EQ(notes.samples.at(4).size(), 11u);
}

TEST_P(LoopTest, ADivergenceKeepsTheLastCheckpoint) {
  RunOptions o = options(200);
  o.schedule = {.peak = 50, .warmup = 100, .steps = 200};
  o.trainer.adamw.max_norm = 0;
  o.save_every = 1;
  Notes notes;
  expect_error([&] { run(o, notes); }, "training has diverged");
  ASSERT_FALSE(notes.saves.empty());
  const auto latest = CheckpointFolder(folder_).latest();
  ASSERT_TRUE(latest.has_value());
  // The weights in it are sound: they know the batch that they were saved after.
  const auto trainer = make_trainer(o.trainer);
  load_state(*trainer, *latest, o.seed);
  const GeneratedData data(o.trainer.model.vocab, o.trainer.batch, o.trainer.seq, o.seed);
  std::vector<int32_t> tokens(size_t(o.trainer.batch) * o.trainer.seq), targets(tokens.size());
  data.fill_batch(uint64_t(trainer->steps()) - 1, Split::train, tokens, targets);
  EXPECT_LE(trainer->evaluate({tokens, targets}), 4 * notes.losses.at(1));
}

// Rates are of all steps, and of the steps alone, whatever comes between them.
TEST_P(LoopTest, ValidationIsNoPartOfASteps) {
  RunOptions o = options(12);
  o.out.clear();
  o.report_every = 6, o.validate_every = 4;
  Notes notes;
  notes.batch_takes = std::chrono::milliseconds(20);
  notes.validation_takes = std::chrono::milliseconds(100);
  const auto start = std::chrono::steady_clock::now();
  run(o, notes);
  const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - start;
  ASSERT_EQ(notes.step_ms.size(), 2u);
  for (const double ms : notes.step_ms) EXPECT_GE(ms, 20);
  EXPECT_LE(6 * (notes.step_ms[0] + notes.step_ms[1]), all.count() - 2 * 100);
}

TEST_P(LoopTest, AStopEndsAValidationToo) {
  RunOptions o = options(4);
  o.validate_every = 2, o.validation_batches = 1000000;
  Notes notes;
  notes.stop_in_validation = true;
  const RunResult result = run(o, notes);
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.step, 2);
  EXPECT_TRUE(notes.validations.empty());
  EXPECT_EQ(notes.saves, std::vector<int64_t>{2});
}

TEST_P(LoopTest, ChecksThePromptOfSamplesFirst) {
  RunOptions o = options(4);
  o.sample_every = 2, o.sample_tokens = 5;
  o.sample_prompt = std::string(o.trainer.model.context, 'a');
  Notes notes;
  expect_error([&] { run(o, notes); }, "the prompt for samples");
  EXPECT_TRUE(notes.losses.empty());
  o.sample_prompt = "";
  run(o, notes);
  EXPECT_EQ(notes.samples.at(2).size(), 5u);
}

TEST_P(LoopTest, LooksAtTheFolderBeforeTheWork) {
  RunOptions o = options(2);
  Notes first, again;
  run(o, first);
  expect_error([&] { run(o, again); }, "--resume");  // would write over what is there
  std::ofstream(folder_.string() + ".file") << "no folder";
  o.out = folder_.string() + ".file/run";
  expect_error([&] { run(o, again); }, "cannot make the folder");
  fs::remove(folder_.string() + ".file");
  EXPECT_TRUE(again.losses.empty());
}

TEST_P(LoopTest, RefusesToResumeAnotherRun) {
  RunOptions o = options(2);
  Notes notes;
  run(o, notes);
  o.resume = true;
  o.schedule.steps = 4;
  o.trainer.batch = 1;
  expect_error([&] { run(o, notes); }, "batch");
  o = options(4);
  o.resume = true;
  o.trainer.model.ffn += 8;
  expect_error([&] { run(o, notes); }, "other sizes");
}

TEST_P(LoopTest, ReportsRatesAndMemoryThatAgree) {
  RunOptions o = options(4);
  o.trainer.accumulate = 2, o.report_every = 2;
  Notes notes;
  run(o, notes);
  ASSERT_EQ(notes.reports.size(), 2u);
  for (const StepReport& r : notes.reports) {
    EXPECT_NEAR(r.samples_per_s * o.trainer.seq, r.tokens_per_s, 1e-9 * r.tokens_per_s);
    EXPECT_NEAR(r.samples_per_s * r.step_ms * 1e-3, o.trainer.batch * 2, 1e-6);
    EXPECT_GT(r.memory.total(), 0);
    EXPECT_GE(r.peak_bytes, r.memory.total());
  }
}

// Fresh weights know nothing: the loss is that of a guess. Other weights are no beginning.
TEST_P(LoopTest, TheFirstLossIsThatOfAGuess) {
  RunOptions o = options(3);
  Notes fresh, resumed, started;
  run(o, fresh);
  ASSERT_EQ(fresh.first_losses.size(), 2u);
  EXPECT_EQ(fresh.first_losses[0], fresh.losses.at(1));
  EXPECT_DOUBLE_EQ(fresh.first_losses[1], std::log(256.0));
  EXPECT_NEAR(fresh.first_losses[0], fresh.first_losses[1], 0.1);

  o.resume = true, o.schedule.steps = 5;
  run(o, resumed);
  EXPECT_EQ(resumed.losses.size(), 2u);
  EXPECT_TRUE(resumed.first_losses.empty());

  o.resume = false, o.start = *CheckpointFolder(folder_).latest(), o.out.clear();
  run(o, started);
  EXPECT_EQ(started.losses.size(), 5u);
  EXPECT_TRUE(started.first_losses.empty());
}

}  // namespace
}  // namespace cria::test
