// The command line. Bad input gets one sentence on stderr and exit code 2, never a stack trace.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <exception>
#include <new>

#include "base/error.h"
#include "cli/command.h"
#include "lab/describe_run.h"
#include "lab/measure.h"

namespace cria {
namespace {

constexpr int kBadInput = 2, kInterrupted = 130;

std::string join(int count, char** words) {
  std::string line = "cria";
  for (int i = 1; i < count; ++i) line += " " + std::string(words[i]);
  return line;
}

// CLI11 lists what it does not expect from the last to the first.
std::string what_is_wrong(const CLI::App& program, const CLI::ParseError& error) {
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError)) return error.what();
  return fmt::format("not expected: {}", fmt::join(program.remaining(true), " "));
}

int run(int argc, char** argv) {
  Invocation invocation{.command_line = join(argc, argv)};
  CLI::App program("cria: LLaMA models trained and run, and every kernel measured on this machine");
  program.name("cria");
  program.set_version_flag("--version", "cria " CRIA_VERSION ", commit " + build_commit());
  program.require_subcommand(0, 1);
  program.get_formatter()->column_width(26);
  add_compare_command(program, invocation);
  add_train_command(program, invocation);
  add_generate_command(program, invocation);
  add_logits_command(program, invocation);
  add_diff_command(program, invocation);
  add_devices_command(program, invocation);
  add_bench_command(program, invocation);
  add_inspect_command(program, invocation);
  add_tune_command(program, invocation);
  program.footer("cria COMMAND --help shows the options of a command.");
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);  // --help, --version
    const auto commands = program.get_subcommands(
        [&](const CLI::App* command) { return argc > 1 && command->get_name() == argv[1]; });
    fmt::print(stderr, "cria: {}; 'cria {}--help' shows what there is\n",
               what_is_wrong(program, error),
               commands.empty() ? "" : commands[0]->get_name() + " ");
    return kBadInput;
  }
  if (program.get_subcommands().empty())
    fail("a command is missing; 'cria --help' shows what there is");
  return invocation.exit_code;
}

}  // namespace
}  // namespace cria

int main(int argc, char** argv) {
  try {
    const int exit_code = cria::run(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      cria::fail("the output could not be written: is the disk full?");
    return exit_code;
  } catch (const cria::Interrupted&) {
    fmt::print(stderr, "cria: interrupted\n");
    return cria::kInterrupted;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "cria: there is not enough memory for this: use smaller sizes\n");
    return cria::kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "cria: {}\n", error.what());
    return cria::kBadInput;
  }
}
