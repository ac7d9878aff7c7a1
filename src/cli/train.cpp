// cria train: a model learns from text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <csignal>
#include <cstdio>

#include "base/format.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json_lines.h"
#include "cli/json_results.h"
#include "cli/model_options.h"
#include "cli/remembered_options.h"
#include "cli/terminal.h"
#include "lab/measure.h"
#include "model/checkpoint.h"
#include "train/data.h"
#include "train/loop.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

struct TrainCommand {
  ModelOptions model;
  std::string plan = "flash";
  std::vector<std::string> data;
  std::string tokenizer, out, start, log;
  bool resume = false;
  int64_t steps = 1000, warmup = -1, save_every = 500, validate_every = 100, sample_every = 0;
  int64_t report_every = 0;
  int keep = 2, sample_tokens = 200;
  uint64_t validation_batches = RunOptions{}.validation_batches;
  double rate = 1e-3, final_share = 0.1;
  float init_std = TrainerOptions{}.init_std;
  AdamWOptions adamw;
  std::string prompt = "\n";
};

// Shows a run on the terminal, and keeps it as lines of JSON.
class Teller final : public RunObserver {
 public:
  Teller(const std::string& log, bool every_report) : log_(log), every_report_(every_report) {}

  int64_t first_step() const { return first_step_; }
  // What went wrong with the file of JSON; empty if nothing did.
  const std::string& lost() const { return log_.lost(); }

  void began(const Trainer& trainer, int64_t first_step) override {
    log_.open(first_step > 0);
    const TrainerOptions& o = trainer.options();
    tell_f("{:.1f} M parameters, plan {}, {} on {}, {} x {} tokens per step\n",
           double(trainer.map().parameters()) * 1e-6, o.plan,
           o.precision == Precision::tf32 ? "tf32" : name_of(o.dtype), name_of(o.device),
           int64_t{o.batch} * o.accumulate, o.seq);
    if (first_step > 0) tell_f("resumed at step {}\n", first_step);
    first_step_ = first_step;
  }

  void first_loss(double loss, double of_a_guess) override {
    constexpr double kNear = 0.1;  // of it: wide models begin a little above
    const bool near = std::abs(loss - of_a_guess) <= kNear * of_a_guess;
    say(fmt::format("the first loss is {:.4f}, {} ln(vocabulary) = {:.4f}{}", loss,
                    near ? "near" : "and should be near", of_a_guess,
                    near ? ", as it should be" : ": above it, --init-std is too large"));
    write({{"first_loss", loss}, {"loss_of_a_guess", of_a_guess}});
  }
  void warned(const std::string& sentence) override {
    progress_.clear();
    std::fputs(fmt::format("cria: warning: {}\n", sentence).c_str(), stderr);  // it may be closed
  }

  void stepped(const StepReport& r) override {
    const std::string line = fmt::format(
        "{} loss {:.4f}  {:.0f} samples/s  {:.0f} tokens/s  {:.1f} ms ({:.1f}+{:.1f}+{:.1f})  ETA "
        "{}",
        progress_bar(r.step, r.steps, 10), r.loss, r.samples_per_s, r.tokens_per_s, r.step_ms,
        r.times.forward_ms, r.times.backward_ms, r.times.optimizer_ms,
        show_duration(double(r.steps - r.step) * r.step_ms * 1e-3));
    if (progress_.shown()) {
      progress_.show(line);
    } else if (every_report_ || r.step >= next_line_ || r.step == r.steps) {
      say(line);
      next_line_ = r.step + std::max<int64_t>(1, r.steps / 50);
    }
    write({{"step", r.step},
           {"loss", r.loss},
           {"learning_rate", r.learning_rate},
           {"gradient_norm", r.gradient_norm},
           {"step_ms", r.step_ms},
           {"forward_ms", r.times.forward_ms},
           {"backward_ms", r.times.backward_ms},
           {"optimizer_ms", r.times.optimizer_ms},
           {"samples_per_s", r.samples_per_s},
           {"tokens_per_s", r.tokens_per_s},
           {"memory_bytes", r.memory.total()},
           {"peak_memory_bytes", r.peak_bytes}});
    tell_memory(r);
  }
  void validated(int64_t step, double loss) override {
    say(fmt::format("step {}: validation loss {:.4f}", step, loss));
    write({{"step", step}, {"validation_loss", loss}});
  }
  void sampled(int64_t step, const std::string& text) override {
    say(fmt::format("step {}: sample\n{}\n", step, text));
    write({{"step", step}, {"sample", text}});
  }
  void saved(int64_t step, const fs::path& folder) override {
    say(fmt::format("step {}: saved {}", step, folder.string()));
    write({{"step", step}, {"saved", folder.string()}});
  }

 private:
  // Once, and again at the end if it has become more.
  void tell_memory(const StepReport& r) {
    const double planned = double(r.memory.total()) / (1 << 20);
    const double peak = double(r.peak_bytes) / (1 << 20);
    if (told_peak_ > 0 && (r.step < r.steps || peak < told_peak_ + 1)) return;
    say(fmt::format("memory: {:.0f} MiB planned, {:.0f} measured at most{}", planned, peak,
                    told_peak_ > 0 ? "" : " so far"));
    told_peak_ = peak;
  }
  void say(const std::string& line) {
    progress_.clear();
    tell(line + "\n");
  }
  // A run whose figures are lost ends, and can be gone on with.
  void write(const Json& line) {
    log_.write(line);
    if (!log_.lost().empty()) request_end();
  }

  ProgressLine progress_;
  JsonLines log_;
  const bool every_report_;  // else, where there is no terminal, about fifty
  int64_t first_step_ = 0, next_line_ = 0;
  double told_peak_ = 0;  // MiB
};

// The checkpoint to go on from, if that is asked for, after taking the options it was made with
// where this command line does not give them.
std::optional<fs::path> resumed_checkpoint(CLI::App& command, const TrainCommand& o) {
  if (!o.resume) return std::nullopt;
  if (o.out.empty()) fail("--resume needs --out, the folder to go on from");
  const auto latest = CheckpointFolder(o.out).latest();
  if (!latest)
    fail_f("{} holds no checkpoint to go on from: to begin a run there, leave --resume out", o.out);
  const Json progress = load_progress(*latest);
  if (progress.contains("options")) give_options(command, progress["options"], latest->string());
  return latest;
}

// The options that a checkpoint does not remember, nor give back when one of its files says so. The
// model and its tokenizer lie beside it; the rest belongs to one call, and names what is written.
void forget_some(CLI::App& command) {
  for (const char* name :
       {"--config", "--model", "--tokenizer", "--device", "--out", "--resume", "--json"})
    command.get_option(name)->configurable(false);
  for (const SizeOption& option : size_options())
    command.get_option(option.name)->configurable(false);
}

// What a checkpoint remembers of the command line. A preset's batch is no preset's any more when
// the run goes on from there.
Json options_to_remember(const CLI::App& command, const TrainerOptions& trainer) {
  Json out = given_options(command);
  out["--batch"] = {std::to_string(trainer.batch)};
  out["--seq"] = {std::to_string(trainer.seq)};
  for (Json& file : out.contains("--data") ? out["--data"] : Json())
    file = fs::absolute(file.get<std::string>()).string();
  return out;
}

std::unique_ptr<Tokenizer> find_tokenizer(const std::string& given, const fs::path& model) {
  if (!given.empty()) return load_tokenizer(given);
  if (!model.empty()) return load_tokenizer(model);
  return make_byte_tokenizer();
}

std::unique_ptr<TrainingData> open_data(const TrainCommand& o, const Tokenizer& tokenizer,
                                        const TrainerOptions& trainer) {
  const bool bytes = tokenizer.speaks_bytes();
  if (o.data.empty()) {
    if (!bytes) fail("the generated text is one of bytes: give --data FILE with this tokenizer");
    return std::make_unique<GeneratedData>(trainer.model.vocab, trainer.batch, trainer.seq,
                                           o.model.seed);
  }
  ProgressLine line;
  const auto progress = [&line](double share) {
    check_stop(&interrupted());
    share < 1 ? line.show(fmt::format("tokenizing {:.0f} %", 100 * share)) : line.clear();
  };
  return std::make_unique<TextData>(std::vector<fs::path>(o.data.begin(), o.data.end()),
                                    bytes ? nullptr : &tokenizer, trainer.batch, trainer.seq,
                                    o.model.seed, progress);
}

int run_train(CLI::App& command, TrainCommand& o) {
  std::signal(SIGPIPE, SIG_IGN);  // what nobody reads ends the run like Ctrl-C, saved
  const auto resumed = resumed_checkpoint(command, o);
  for (const std::string& file : o.data) check_not_the_same(o.log, file);
  // The folder of a model that brings its sizes and its tokenizer.
  const fs::path origin = resumed ? *resumed : fs::path(o.start);
  if (!origin.empty()) load_config(origin);  // refused here if it is none
  ModelOptions model = o.model;
  if (!origin.empty() && command.count("--config") == 0) model.config = origin / "config.json";
  TrainerOptions trainer = model.trainer();
  trainer.plan = o.plan;
  trainer.adamw = o.adamw;
  trainer.init_std = o.init_std;

  const std::unique_ptr<Tokenizer> tokenizer = find_tokenizer(o.tokenizer, origin);
  if (tokenizer->vocab_size() > trainer.model.vocab) {
    if (!is_preset(model.config) || model.sizes.vocab > 0)
      fail_f("the tokenizer has {} tokens, and the model {}: they do not belong together",
             tokenizer->vocab_size(), trainer.model.vocab);
    trainer.model.vocab = tokenizer->vocab_size();
  }
  const std::unique_ptr<TrainingData> data = open_data(o, *tokenizer, trainer);

  tell_f("text: {}, {} tokens to learn from, {} to validate\n",
         o.data.empty() ? "generated" : fmt::format("{}", fmt::join(o.data, ", ")),
         data->tokens(Split::train), data->tokens(Split::validation));
  const uint64_t all = data->validation_batches();
  const uint64_t validation_batches =
      o.validation_batches > 0 ? std::min(o.validation_batches, all) : all;
  const int64_t warmup = o.warmup >= 0 ? o.warmup : std::min<int64_t>(100, o.steps / 10);
  const bool cuda = trainer.device.backend == Backend::cuda;
  const RunOptions options{.trainer = trainer,
                           .schedule = {.peak = static_cast<float>(o.rate),
                                        .warmup = warmup,
                                        .steps = o.steps,
                                        .final_share = static_cast<float>(o.final_share)},
                           .seed = model.seed,
                           .out = o.out,
                           .resume = o.resume,
                           .start = o.start,
                           .options = options_to_remember(command, trainer),
                           .save_every = o.save_every,
                           .keep = o.keep,
                           .report_every = o.report_every > 0 ? o.report_every : (cuda ? 10 : 1),
                           .validate_every = o.validate_every,
                           .validation_batches = validation_batches,
                           .sample_every = o.sample_every,
                           .sample_tokens = o.sample_tokens,
                           .sample_prompt = o.prompt,
                           .stop = &interrupted()};
  const RunData run_data{
      .training = [&](uint64_t n, auto tokens,
                      auto targets) { data->fill_batch(n, Split::train, tokens, targets); },
      .validation =
          [&](uint64_t n, auto tokens, auto targets) {
            return data->fill_batch(n, Split::validation, tokens, targets);
          },
      .tokenizer = tokenizer.get()};
  Teller teller(o.log, o.report_every > 0);
  const RunResult result = run_training(options, run_data, teller);
  const char* saved = o.out.empty() ? "" : ", saved; --resume goes on from here";
  if (!teller.lost().empty())
    fail_f("{}; the run ended after step {}{}", teller.lost(), result.step, saved);
  if (result.stopped)
    tell_f("stopped after step {}{}\n", result.step, saved);
  else if (teller.first_step() >= o.steps)
    tell("nothing was left to do: --steps N goes on from here\n");
  return 0;
}

void add_run_options(CLI::App& command, TrainCommand& o) {
  command
      .add_option("--data", o.data,
                  "Text to learn from (default: a generated text with some structure)")
      ->option_text("FILE ...");
  command
      .add_option("--tokenizer", o.tokenizer,
                  "A tokenizer.json (default: that of --model, else a token is a byte)")
      ->option_text("FILE");
  command
      .add_option("--model", o.start, "Begin with the weights in this folder, instead of --config")
      ->option_text("DIR");
  command.add_option("--init-std", o.init_std, "Deviation of the first weights (default: 0.02)")
      ->check(CLI::Range(1e-6, 1e3))
      ->option_text("X");
  command.add_option("--steps", o.steps, "Of the whole run (default: 1000)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->option_text("N");
  command.add_option("--out", o.out, "Folder for checkpoints (default: none are saved)")
      ->option_text("DIR");
  command.add_flag("--resume", o.resume,
                   "Go on from the latest checkpoint in --out, as it was begun");
  command.add_option("--accumulate", o.model.accumulate, "Batches per step (default: 1)")
      ->check(CLI::Range(1, 1 << 20))
      ->option_text("N");
  command.add_flag("--recompute", o.model.recompute,
                   "Let plan flash keep less for the backward pass and compute it again");
}

void add_optimizer_options(CLI::App& command, TrainCommand& o) {
  command.add_option("--lr", o.rate, "Peak learning rate (default: 0.001)")
      ->check(CLI::Range(0.0, 1e6))
      ->option_text("X");
  command
      .add_option("--warmup", o.warmup, "Steps up to it (default: 100, or a tenth of all if less)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->option_text("N");
  command
      .add_option("--final-lr", o.final_share, "At the end, as a share of the peak (default: 0.1)")
      ->check(CLI::Range(0.0, 1.0))
      ->option_text("X");
  command.add_option("--beta1", o.adamw.beta1, "Of AdamW (default: 0.9)")
      ->check(CLI::Range(0.0, 1.0))
      ->option_text("X");
  command.add_option("--beta2", o.adamw.beta2, "Of AdamW (default: 0.95)")
      ->check(CLI::Range(0.0, 1.0))
      ->option_text("X");
  command.add_option("--weight-decay", o.adamw.weight_decay, "Of matrices (default: 0.1)")
      ->check(CLI::Range(0.0, 1e6))
      ->option_text("X");
  command
      .add_option("--clip", o.adamw.max_norm, "Largest norm of all gradients; 0: any (default: 1)")
      ->check(CLI::Range(0.0, 1e6))
      ->option_text("X");
}

void add_report_options(CLI::App& command, TrainCommand& o) {
  auto every = [&](const char* name, int64_t& value, const char* help) {
    command.add_option(name, value, help)
        ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
        ->option_text("N");
  };
  every(
      "--report-every", o.report_every,
      "Steps between reports of the loss (default: 10 on CUDA, 1 on the CPU; into a file about 50 "
      "in all)");
  every("--validate-every", o.validate_every, "Steps between validations; 0: never (default: 100)");
  command
      .add_option("--validation-batches", o.validation_batches,
                  "Batches of a validation; 0: all there are (default: 8)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->option_text("N");
  every("--sample-every", o.sample_every, "Steps between samples of text; 0: never (default: 0)");
  command.add_option("--sample-tokens", o.sample_tokens, "Length of a sample (default: 200)")
      ->check(CLI::Range(1, 1 << 20))
      ->option_text("N");
  command.add_option("--prompt", o.prompt, "What samples begin with (default: a new line)")
      ->option_text("TEXT");
  every("--save-every", o.save_every,
        "Steps between checkpoints; 0: at the end only (default: 500)");
  command.add_option("--keep", o.keep, "Checkpoints to keep (default: 2)")
      ->check(CLI::Range(1, 1 << 20))
      ->option_text("N");
  add_json_option(command, o.log, "Write a line of JSON per report to this file");
}

}  // namespace

void add_train_command(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<TrainCommand>();
  CLI::App* command = program.add_subcommand("train", "Train a model on text");
  add_run_options(*command, *options);
  add_plan_option(*command, options->plan);
  add_model_options(*command, options->model);
  add_optimizer_options(*command, *options);
  add_report_options(*command, *options);
  CLI::Option* start = command->get_option("--model");
  start->excludes("--config")->excludes("--init-std");
  for (const SizeOption& option : size_options()) start->excludes(option.name);
  forget_some(*command);
  command->footer(
      "Ctrl-C finishes the step, saves a checkpoint and ends; --resume goes on.\n\n"
      "For example: cria train --config debug --data text.txt --steps 2000 --out run");
  command->callback(
      [options, command, &invocation] { invocation.exit_code = run_train(*command, *options); });
}

}  // namespace cria
