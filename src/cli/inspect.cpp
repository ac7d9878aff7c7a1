// cria inspect: what a kernel does to memory, seen by the tracer.
#include "lab/inspect.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "base/json.h"
#include "cli/command.h"
#include "cli/json_results.h"
#include "cli/problem_options.h"
#include "lab/describe_run.h"
#include "lab/draw.h"

namespace cria {
namespace {

struct InspectCommand {
  ProblemOptions problem;
  InspectOptions how;
  std::string json;
  std::string colour = "auto";
  bool no_drawing = false;
};

bool wants_colours(const std::string& choice) {
  if (choice != "auto") return choice == "always";
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR") && terminal &&
         std::string(terminal) != "dumb";
}

void run_inspect(InspectCommand& options, const std::string& command_line) {
  options.problem.device = "cpu";
  Json json = describe_run(kCpu, command_line);
  for (ProblemRequest request : options.problem.requests()) {
    request.sets = 1;
    const std::unique_ptr<Problem> problem = make_problem(options.problem.spec(), request);
    for (const Inspection& inspection : inspect(*problem, options.how)) {
      fmt::print("{}\n", to_table(inspection));
      if (!options.no_drawing)
        fmt::print("{}\n", draw_warp(inspection, wants_colours(options.colour)));
      json["results"].push_back(to_json(inspection));
    }
  }
  if (!options.json.empty()) write_json(options.json, json);
}

}  // namespace

void add_inspect_command(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<InspectCommand>();
  CLI::App* command = program.add_subcommand(
      "inspect",
      "Trace a kernel's memory accesses: requests, sectors, bank conflicts; needs no GPU");
  add_problem_options(*command, options->problem);
  command->get_option("--dtype")->description(
      "Element type: f32, bf16 or f16 (default: f32; of two sizes, the first)");
  command
      ->add_option(
          "--config", options->how.config,
          "A configuration by name or its beginning, or all (default: the first that fits)")
      ->option_text("NAME");
  command
      ->add_option("--programs", options->how.programs,
                   "Trace only so many programs (default: all)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->option_text("N");
  command->add_option("--colour", options->colour, "auto, the default, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->option_text("WHEN");
  command->add_flag("--no-drawing", options->no_drawing, "Tables only");
  add_json_option(*command, options->json, "Write all figures to this file");
  command->footer([] {
    return "For example: cria inspect transpose --rows 256 --cols 256\n\n" + list_problems();
  });
  command->callback([options, &invocation] { run_inspect(*options, invocation.command_line); });
}

}  // namespace cria
