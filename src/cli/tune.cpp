// cria tune: find the fastest configuration of a kernel and keep it.
#include "lab/tune.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/json.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json_results.h"
#include "cli/problem_options.h"
#include "lab/describe_run.h"

namespace cria {
namespace {

struct TuneCommand {
  ProblemOptions problem;
  std::string json;
  double seconds = 2;
  bool dry_run = false;
};

Json to_json(const TuneResult& result) {
  Json json = {{"kernel", result.kernel},
               {"shape_class", result.winner.shape_class},
               {"default_config", result.default_config},
               {"config", result.winner.config},
               {"time_us", result.winner.time_us},
               {"gain", result.gain}};
  if (result.measured.packed) json["packed"] = true;
  return json;
}

void run_tune(const TuneCommand& options, const std::string& command_line) {
  if (!options.problem.cache.empty()) ::setenv("CRIA_CACHE", options.problem.cache.c_str(), 1);
  const std::filesystem::path cache = tuning_cache_path();
  if (!options.dry_run) check_tuning_cache(cache);
  MeasureOptions how{.budget_s = options.seconds};
  how.stop = &interrupted();
  const std::vector<ProblemRequest> requests = options.problem.requests();
  Json json = describe_run(requests.at(0).device, command_line);
  write_results(options.json, json, [&] {
    for (const ProblemRequest& request : requests) {
      const std::vector<TuneResult> results = tune(options.problem.spec(), request, how);
      fmt::print("{}\n", to_table(results.at(0).measured));
      for (const TuneResult& result : results) {
        if (!options.dry_run) record_tuned(cache, result.winner);
        fmt::print("{} {}: {} ({:.3f}x the speed of the default, {})\n", result.kernel,
                   result.winner.shape_class, result.winner.config, result.gain,
                   result.default_config);
        json["results"].push_back(to_json(result));
      }
      std::fflush(stdout);
    }
  });
  if (!options.dry_run) fmt::print("kept in {}\n", cache.string());
}

}  // namespace

void add_tune_command(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<TuneCommand>();
  CLI::App* command = program.add_subcommand(
      "tune", "Time every configuration of a kernel, check its result, and keep the fastest");
  add_problem_options(*command, options->problem);
  add_device_option(*command, options->problem.device);
  command
      ->add_option("--seconds", options->seconds,
                   "Time to spend on measuring each size (default: 2)")
      ->check(CLI::Range(0.0, 3600.0))
      ->option_text("S");
  command->add_flag("--dry-run", options->dry_run, "Show the winner without keeping it");
  add_json_option(*command, options->json, "Write the winners to this file");
  add_cache_option(*command, options->problem.cache);
  command->footer(
      [] { return "For example: cria tune gemm --m 512 --n 512 --k 512\n\n" + list_problems(); });
  command->callback([options, &invocation] { run_tune(*options, invocation.command_line); });
}

}  // namespace cria
