// cria compare: the plans side by side.
#include "lab/compare.h"

#include <fmt/format.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json_results.h"
#include "cli/list_option.h"
#include "cli/model_options.h"
#include "cli/terminal.h"
#include "lab/describe_run.h"
#include "lab/measure.h"
#include "train/data.h"

namespace cria {
namespace {

struct CompareCommand {
  ModelOptions model;
  std::vector<std::string> plans;
  int steps = 0;
  bool rounded = false, kernels = false, wide = false;
  std::string json;
};

int run_compare(const CompareCommand& o, const std::string& command_line) {
  const TrainerOptions trainer = o.model.trainer();
  const bool cuda = trainer.device.backend == Backend::cuda;
  CompareOptions options{.trainer = trainer,
                         .plans = o.plans.empty() ? plan_names() : o.plans,
                         .rounded = o.rounded,
                         .steps = o.steps,
                         .seed = o.model.seed,
                         .stop = &interrupted()};
  for (std::string& plan : options.plans) {  // before hours of the others
    plan = find_plan(plan);
    check_step_size(plan, trainer.model, trainer.batch, trainer.seq);
  }
  const GeneratedData data(trainer.model.vocab, trainer.batch, trainer.seq, o.model.seed);
  const WeightMap map(trainer.model);
  fmt::print("{}: {:.1f} M parameters, {} sequences of {} tokens, {} on {} ({})\n",
             o.model.model_name(), double(map.parameters()) * 1e-6, trainer.batch, trainer.seq,
             trainer.precision == Precision::tf32 ? "tf32" : name_of(trainer.dtype),
             name_of(trainer.device), describe(trainer.device).name);
  Json json = describe_run(trainer.device, command_line);
  ProgressLine progress;
  const Comparison comparison = compare_plans(
      options,
      [&](int64_t step, std::span<int32_t> tokens, std::span<int32_t> targets) {
        data.fill_batch(uint64_t(step), Split::train, tokens, targets);
      },
      [&](const std::string& plan, int step, int steps) {
        progress.show(steps > 0 ? fmt::format("{} {}", plan, progress_bar(step, steps))
                                : fmt::format("{}: first steps", plan));
      });
  progress.clear();
  if (comparison.plans.empty()) throw Interrupted();
  fmt::print("{}{}", to_table(comparison, o.wide), to_bounds(comparison));
  if (o.kernels)
    for (const PlanFigures& f : comparison.plans)
      fmt::print("\n{}, launch by launch{}:\n{}\n", f.plan, cuda ? " outside the graph" : "",
                 to_kernel_table(f));
  json["config"] = o.model.model_name();
  json["batch"] = trainer.batch;
  json["seq"] = trainer.seq;
  json["dtype"] = trainer.precision == Precision::tf32 ? "tf32" : name_of(trainer.dtype);
  json.update(to_json(comparison));
  if (!o.json.empty()) write_json(o.json, json);
  if (interrupted()) throw Interrupted();  // what had been measured by then is shown
  return 0;
}

}  // namespace

void add_compare_command(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<CompareCommand>();
  CLI::App* command = program.add_subcommand(
      "compare",
      "Train under every plan on the same batches: loss, time, memory, launches, traffic");
  add_list_option(*command, "--plans", options->plans, "Which, the yardstick first (default: all)")
      ->option_text("PLAN,...");
  add_model_options(*command, options->model);
  command->add_option("--accumulate", options->model.accumulate, "Batches per step (default: 1)")
      ->check(CLI::Range(1, 1 << 20))
      ->option_text("N");
  command->add_flag("--recompute", options->model.recompute,
                    "Let plan flash keep less for the backward pass and compute it again");
  command
      ->add_option(
          "--steps", options->steps,
          "Timed steps of each plan (default: 50 on CUDA, as many as take 1.5 s on the CPU, 5 to "
          "200)")
      ->check(CLI::Range(1, 1 << 20))
      ->option_text("N");
  command->add_flag("--rounded", options->rounded,
                    "Also run the last plan on the model with widths rounded up to 16 bytes");
  command->add_flag("--kernels", options->kernels, "Show where each plan's step goes, by kernel");
  command->add_flag("--wide", options->wide, "Show all columns, more than a terminal of 100 has");
  add_json_option(*command, options->json, "Write all figures to this file");
  command->footer("For example: cria compare --config debug --batch 1 --seq 2048");
  command->callback([options, &invocation] {
    invocation.exit_code = run_compare(*options, invocation.command_line);
  });
}

}  // namespace cria
