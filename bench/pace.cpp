#include <iostream>

#include "base/format.h"
#include "base/json.h"
#include "bench/tools.h"
#include "cli/problem_options.h"
#include "lab/bench.h"

namespace cria::claims {
namespace {

// The fastest configuration, by a short race of all.
std::string choose(const ProblemSpec& spec, const ProblemRequest& request) {
  BenchOptions how{.config = "all"};
  how.measure.budget_s = 0.3;
  const BenchResult result = cria::bench(spec, request, how);
  const BenchRow* best = result.best(BenchRow::Kind::kernel);
  if (!best) fail_f("no configuration of {} gives a right result", spec.name);
  return best->config;
}

void run(const ProblemOptions& options) {
  const ProblemSpec& spec = options.spec();
  const ProblemRequest request = options.requests().at(0);
  const std::string config = choose(spec, request);
  const std::unique_ptr<Problem> problem = make_problem(spec, request);
  const Variant& variant = problem->variants().at(0);
  const Contender contender{variant.name,
                            [&](Stream& s, int turn) { variant.run(s, turn, config); }};
  const Accuracy accuracy = problem->check(contender.run);
  Sampler sampler(problem->stream(), contender, {.sets = problem->sets()});
  sampler.sample_us();
  const Json ready = {{"config", config},
                      {"flops", problem->cost().flops},
                      {"max_error", accuracy.max_error},
                      {"right", accuracy.ok}};
  std::cout << ready.dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);)
    std::cout << sampler.sample_us() << std::endl;
}

}  // namespace

void add_pace_command(CLI::App& program) {
  auto options = std::make_shared<ProblemOptions>();
  CLI::App* command = program.add_subcommand(
      "pace",
      "Time a kernel in microseconds whenever a line comes in on stdin, to take turns with others");
  add_problem_options(*command, *options);
  add_device_option(*command, options->device);
  command->footer("For example: echo | cria_bench pace rmsnorm --rows 4096 --cols 4096");
  command->callback([options] { run(*options); });
}

}  // namespace cria::claims
