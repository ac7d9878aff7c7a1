#include <algorithm>

#include "base/format.h"
#include "bench/tools.h"
#include "cli/problem_options.h"

namespace cria::claims {
namespace {

struct LaunchOptions {
  ProblemOptions problem;
  std::string variant;
  std::string config;
};

void run(const LaunchOptions& options) {
  ProblemRequest request = options.problem.requests().at(0);
  request.sets = 1;
  const std::unique_ptr<Problem> problem = make_problem(options.problem.spec(), request);
  for (const Variant& variant : problem->variants()) {
    if (!options.variant.empty() && variant.name != options.variant) continue;
    const KernelCall& call = variant.calls.at(0);
    launch(problem->stream(), call, options.config);
    problem->stream().synchronize();
    fmt::print("{} {}\n", call.kernel, choose_config(problem->stream(), call, options.config).name);
    return;
  }
  fail_f("{} has no kernel called '{}'", options.problem.kernel, options.variant);
}

}  // namespace

void add_launch_command(CLI::App& program) {
  auto options = std::make_shared<LaunchOptions>();
  CLI::App* command =
      program.add_subcommand("launch", "Run one kernel once, for a profiler to look at");
  add_problem_options(*command, options->problem);
  add_device_option(*command, options->problem.device);
  command->add_option("--variant", options->variant, "One kernel of a problem that has several");
  command->add_option("--config", options->config, "A configuration by name");
  command->footer("For example: cria_bench launch rmsnorm --rows 4096 --cols 4096");
  command->callback([options] { run(*options); });
}

}  // namespace cria::claims
