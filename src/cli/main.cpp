// The command line of cria.
#include "cli/program.h"
#include "lab/describe_run.h"

namespace cria {
namespace {

void add_commands(CLI::App& program, Invocation& invocation) {
  program.set_version_flag("--version", "cria " CRIA_VERSION ", commit " + build_commit());
  program.get_formatter()->column_width(26);
  add_compare_command(program, invocation);
  add_train_command(program, invocation);
  add_generate_command(program, invocation);
  add_logits_command(program, invocation);
  add_tokenize_command(program, invocation);
  add_diff_command(program, invocation);
  add_devices_command(program, invocation);
  add_bench_command(program, invocation);
  add_inspect_command(program, invocation);
  add_tune_command(program, invocation);
  program.footer(
      "cria COMMAND --help shows the options of a command.\n\n"
      "For example: cria train --config debug --data text.txt --out run");
}

}  // namespace
}  // namespace cria

int main(int argc, char** argv) {
  return cria::run_program(
      {"cria", "cria: LLaMA models trained and run, and every kernel measured on this machine",
       cria::add_commands},
      argc, argv);
}
