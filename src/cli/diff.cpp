// cria diff: where two plans first disagree by more than rounding.
#include "lab/diff.h"

#include <fmt/format.h>

#include "base/format.h"
#include "base/json.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/json_results.h"
#include "cli/model_options.h"
#include "lab/describe_run.h"
#include "train/data.h"

namespace cria {
namespace {

struct DiffCommand {
  ModelOptions model{.config = "debug"};
  std::string plan = "flash", against = "baseline", json;
  bool all = false;
};

int run_diff(const DiffCommand& o, const std::string& command_line) {
  const TrainerOptions trainer = o.model.trainer();
  if (trainer.seq < 2)
    fail(
        "--seq 1 leaves nothing but rounding in the gradients of queries and keys: give 2 or more");
  const size_t rows = size_t(trainer.batch) * trainer.seq;
  std::vector<int32_t> tokens(rows), targets(rows);
  GeneratedData(trainer.model.vocab, trainer.batch, trainer.seq, o.model.seed)
      .fill_batch(0, Split::train, tokens, targets);
  const auto differences = diff_plans(trainer, o.plan, o.against, o.model.seed, {tokens, targets});

  Table table({{"tensor", Table::Align::left},
               {"shape"},
               {"length"},
               {"difference"},
               {"rounding explains"},
               {""}});
  const TensorDifference* first = nullptr;
  Json json = describe_run(trainer.device, command_line);
  for (const TensorDifference& d : differences) {
    if (d.differs() && !first) first = &d;
    json["tensors"].push_back({{"name", d.name},
                               {"rows", d.rows},
                               {"cols", d.cols},
                               {"norm", d.norm},
                               {"relative_difference", d.relative},
                               {"bound", d.bound},
                               {"differs", d.differs()}});
    if (o.all || d.differs() || &d == &differences.back() || !d.name.starts_with("gradient of "))
      table.add_row({d.name, fmt::format("{} x {}", d.rows, d.cols), fmt::format("{:.4g}", d.norm),
                     fmt::format("{:.2e}", d.relative), fmt::format("{:.2e}", d.bound),
                     d.differs() ? "DIFFERS" : "same"});
  }
  fmt::print("{}\n", table.to_string());
  if (first)
    fmt::print("{} and {} first differ by more than rounding in {}\n", o.plan, o.against,
               first->name);
  else
    fmt::print("{} and {} agree to rounding in all {} tensors, {} gradients among them\n", o.plan,
               o.against, differences.size(),
               std::ranges::count_if(differences, [](const TensorDifference& d) {
                 return d.name.starts_with("gradient of ");
               }));
  if (!o.json.empty()) write_json(o.json, json);
  return first ? 1 : 0;
}

}  // namespace

void add_diff_command(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<DiffCommand>();
  CLI::App* command = program.add_subcommand(
      "diff", "Run two plans on the same weights and batch and show where they first differ");
  add_plan_option(*command, options->plan);
  take_plan_names(*command
                       ->add_option("--against", options->against,
                                    "The plan to compare with (default: baseline)")
                       ->option_text("PLAN"));
  add_model_options(*command, options->model);
  command->add_flag("--all", options->all, "Show the gradient of every weight");
  add_json_option(*command, options->json, "Write all figures to this file");
  command->footer(
      "Exit code 1 when they differ by more than rounding explains.\n\n"
      "For example: cria diff --config debug --plan flash --against baseline");
  command->callback([options, &invocation] {
    invocation.exit_code = run_diff(*options, invocation.command_line);
  });
}

}  // namespace cria
