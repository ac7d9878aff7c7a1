// A program of commands, cria or cria_bench. Bad input gets one sentence on stderr and exit code 2,
// never a stack trace; a word that is nearly right is answered with "did you mean".
#pragma once

#include <functional>
#include <string>

#include "cli/command.h"

namespace cria {

struct Program {
  std::string name;
  std::string description;
  std::function<void(CLI::App& program, Invocation& invocation)> add_commands;
};

// Runs the command line; the exit code.
int run_program(const Program& program, int argc, char** argv);

}  // namespace cria
