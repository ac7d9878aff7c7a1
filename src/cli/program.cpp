#include "cli/program.h"

#include <execinfo.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include "base/format.h"
#include "base/nearest.h"
#include "cli/values.h"
#include "lab/measure.h"

namespace cria {
namespace {

constexpr int kBadInput = 2, kInterrupted = 130;

constexpr const char* kOutputLost =
    "the output could not be written: is the disk full, or did its reader end?";

// A file that is opened while stdout is closed would be the new stdout, and what is printed would go
// into it. What takes its place, the lowest number that is free, cannot be written to.
void occupy_closed_files() {
  for (const int file : {0, 1, 2})
    if (::fcntl(file, F_GETFD) < 0 && ::open("/dev/null", O_RDONLY) < 0) return;
}

// The option or command that the first of these unexpected words was meant to be, if any is near.
std::string meant_by(const std::string& word, const CLI::App& program, const CLI::App* command) {
  std::vector<std::string> known;
  if (!word.starts_with("-")) {
    if (!command)
      for (const CLI::App* c : program.get_subcommands({})) known.push_back(c->get_name());
    return nearest_word(word, known);
  }
  for (const CLI::Option* option : (command ? command : &program)->get_options())
    known.insert(known.end(), option->get_lnames().begin(), option->get_lnames().end());
  const size_t begin = word.find_first_not_of('-');
  if (begin == std::string::npos) return "";
  const std::string name = nearest_word(word.substr(begin, word.find('=') - begin), known);
  return name.empty() ? "" : "--" + name;
}

std::string what_is_wrong(const CLI::App& program, const CLI::App* command,
                          const CLI::ParseError& error) {
  const std::vector<std::string> unexpected = program.remaining(true);
  std::string meant;
  for (const std::string& word : unexpected)
    if (meant.empty()) meant = meant_by(word, program, command);
  // A misspelt option may be the one that is missing.
  const bool extras = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  if (!extras && meant.empty()) return fmt::format("{};", error.what());
  return fmt::format("not expected: {};{}", fmt::join(unexpected, " "),
                     meant.empty() ? "" : fmt::format(" did you mean {}?", meant));
}

int parse_and_run(const Program& what, int argc, char** argv) {
  Invocation invocation{.command_line =
                            fmt::format("{} {}", what.name, fmt::join(argv + 1, argv + argc, " "))};
  CLI::App program(what.description);
  program.name(what.name);
  program.require_subcommand(0, 1);
  what.add_commands(program, invocation);
  check_values(program);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);  // --help, --version
    const auto commands = program.get_subcommands(
        [&](const CLI::App* command) { return argc > 1 && command->get_name() == argv[1]; });
    const CLI::App* command = commands.empty() ? nullptr : commands[0];
    fail_f("{} '{} {}--help' shows what there is", what_is_wrong(program, command, error),
           what.name, command ? command->get_name() + " " : "");
  }
  if (program.get_subcommands().empty())
    fail_f("a command is missing; '{} --help' shows what there is", what.name);
  return invocation.exit_code;
}

}  // namespace

int run_program(const Program& program, int argc, char** argv) {
  // NOTE: the C library looks for the unwinder when an error first crosses one of its frames, and gives
  // up if there is no memory left to find it. backtrace() makes it look now.
  void* frame = nullptr;
  ::backtrace(&frame, 1);
  // One line on stderr. There is nobody to tell when that fails.
  const auto complain = [&](const std::string& text) {
    std::fputs(fmt::format("{}: {}\n", program.name, text).c_str(), stderr);
  };
  occupy_closed_files();
  try {
    const int exit_code = parse_and_run(program, argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) fail(kOutputLost);
    return exit_code;
  } catch (const Interrupted&) {
    complain("interrupted");
    return kInterrupted;
  } catch (const std::bad_alloc&) {
    complain("there is not enough memory for this: use smaller sizes");
  } catch (const std::filesystem::filesystem_error& error) {
    complain(fmt::format("cannot use {}: {}; check its permissions or choose another",
                         error.path1().string(), error.code().message()));
  } catch (const std::system_error& error) {
    complain(std::ferror(stdout)
                 ? kOutputLost
                 : fmt::format("the system refuses what this needs: {}; is a limit of memory or "
                               "threads (ulimit) too low?",
                               error.code().message()));
  } catch (const std::exception& error) {
    complain(error.what());
  }
  return kBadInput;
}

}  // namespace cria
