// cria bench: a kernel against its rivals and the machine's ceiling.
#include "lab/bench.h"

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

struct BenchCommand {
  ProblemOptions problem;
  std::string config;
  std::string json;
  double seconds = 1;
  bool hot = false;
};

int run_bench(const BenchCommand& options, const std::string& command_line) {
  if (!options.problem.cache.empty()) ::setenv("CRIA_CACHE", options.problem.cache.c_str(), 1);
  BenchOptions how{.config = options.config};
  how.measure.budget_s = options.seconds;
  how.measure.stop = &interrupted();
  const std::vector<ProblemRequest> requests = options.problem.requests();
  Json json = describe_run(requests.at(0).device, command_line);
  bool right = true;
  write_results(options.json, json, [&] {
    for (ProblemRequest request : requests) {
      if (options.hot) request.sets = 1;
      const BenchResult result = bench(options.problem.spec(), request, how);
      fmt::print("{}\n", to_table(result, options.config == "all"));
      std::fflush(stdout);
      json["results"].push_back(to_json(result));
      right = right && result.all_right();
    }
  });
  if (!right)
    fmt::print(stderr, "cria: a result marked WRONG is off by more than rounding explains\n");
  return right ? 0 : 1;
}

}  // namespace

void add_bench_command(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<BenchCommand>();
  CLI::App* command =
      program.add_subcommand("bench", "Time a kernel against its rivals and the machine's ceiling");
  add_problem_options(*command, options->problem);
  add_device_option(*command, options->problem.device);
  command
      ->add_option(
          "--config", options->config,
          "A configuration by name, or all (default: the tuned one, else the first that fits)")
      ->option_text("NAME");
  command
      ->add_option("--seconds", options->seconds,
                   "Time to spend on measuring each size (default: 1)")
      ->check(CLI::Range(0.0, 3600.0))
      ->option_text("S");
  command->add_flag(
      "--hot", options->hot,
      "One set of operands, which may stay in the cache (default: as many as exceed it)");
  add_json_option(*command, options->json, "Write all figures to this file");
  add_cache_option(*command, options->problem.cache);
  command->footer([] {
    return "For example: cria bench rmsnorm --rows 4096,65536 --cols 1024\n\n" + list_problems();
  });
  command->callback([options, &invocation] {
    invocation.exit_code = run_bench(*options, invocation.command_line);
  });
}

}  // namespace cria
