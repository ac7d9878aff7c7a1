// The commands of `cria`: each adds itself, with its options, to the program.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace cria {

// What commands share.
struct Invocation {
  std::string command_line;  // as typed
  int exit_code = 0;
};

void add_devices_command(CLI::App& program, Invocation& invocation);
void add_bench_command(CLI::App& program, Invocation& invocation);
void add_inspect_command(CLI::App& program, Invocation& invocation);
void add_tune_command(CLI::App& program, Invocation& invocation);
void add_train_command(CLI::App& program, Invocation& invocation);
void add_generate_command(CLI::App& program, Invocation& invocation);
void add_logits_command(CLI::App& program, Invocation& invocation);
void add_tokenize_command(CLI::App& program, Invocation& invocation);
void add_compare_command(CLI::App& program, Invocation& invocation);
void add_diff_command(CLI::App& program, Invocation& invocation);

}  // namespace cria
