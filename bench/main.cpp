// cria_bench: measures the claims of this folder; see also tools.h. The exit status is 1 when a
// claim is not met, cannot be measured, or some result is wrong.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/durable_file.h"
#include "base/format.h"
#include "base/nearest.h"
#include "bench/tools.h"
#include "bench/verdict.h"
#include "cli/interrupt.h"
#include "cli/problem_options.h"
#include "cli/program.h"
#include "lab/describe_run.h"

namespace cria::claims {
namespace {

// By file, in the order they are shown.
using ClaimFile = std::pair<const char*, std::vector<Claim> (*)()>;
const std::vector<ClaimFile> kGpuClaims = {
    {"rmsnorm", rmsnorm_claims},     {"silu_up", silu_up_claims},
    {"softmax", softmax_claims},     {"reduction", reduction_claims},
    {"transpose", transpose_claims}, {"gemm", gemm_claims},
    {"gate_up", gate_up_claims},     {"cross_entropy", cross_entropy_claims},
    {"adamw", adamw_claims}};
const std::vector<ClaimFile> kCpuClaims = {{"attention", cpu_attention_claims}};

struct ClaimsOptions {
  std::string device = "auto";
  std::vector<std::string> only;
  std::string json;
  double seconds = 1;
};

std::vector<Claim> chosen_claims(const ClaimsOptions& options, Device device) {
  const auto& files = device.backend == Backend::cuda ? kGpuClaims : kCpuClaims;
  std::vector<std::string> names;
  for (const auto& [name, claims] : files) names.push_back(name);
  for (const std::string& name : options.only)
    if (std::ranges::find(names, name) == names.end())
      fail_f("there are no claims '{}' for {}{}", name, name_of(device), suggest(name, names));
  std::vector<Claim> chosen;
  for (const auto& [name, claims] : files) {
    if (!options.only.empty() && std::ranges::find(options.only, name) == options.only.end())
      continue;
    for (Claim& claim : claims()) chosen.push_back(std::move(claim));
  }
  return chosen;
}

// Whether all is as claimed.
bool run_claims(const ClaimsOptions& options, const std::string& command_line) {
  const Device device = parse_device(options.device);
  const std::vector<Claim> claims = chosen_claims(options, device);
  if (!options.json.empty()) check_writable(options.json);
  const std::vector<Verdict> verdicts = judge(claims, {device, options.seconds, &interrupted()});
  if (!options.json.empty()) {
    Json json = describe_run(device, command_line);
    json["claims"] = to_json(verdicts);
    write_json(options.json, json);
  }
  fmt::print("{}{}\n", to_table(verdicts), sum_up(verdicts));
  return all_good(verdicts);
}

void add_claims_command(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<ClaimsOptions>();
  CLI::App* command = program.add_subcommand("claims", "Measure every claim made for a device");
  add_device_option(*command, options->device);
  command->add_option("--only", options->only, "Only these files' claims, e.g. gemm,softmax")
      ->delimiter(',');
  command->add_option("--seconds", options->seconds, "To spend on one problem")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  command->add_option("--json", options->json, "Write all figures to this file");
  command->footer("For example: cria_bench claims --only gemm,softmax");
  command->callback([options, &invocation] {
    invocation.exit_code = run_claims(*options, invocation.command_line) ? 0 : 1;
  });
}

void add_commands(CLI::App& program, Invocation& invocation) {
  add_claims_command(program, invocation);
  add_launch_command(program);
  add_pace_command(program);
  add_decode_command(program, invocation);
  add_growth_command(program, invocation);
}

}  // namespace
}  // namespace cria::claims

int main(int argc, char** argv) {
  return cria::run_program(
      {"cria_bench", "cria_bench: the measured claims", cria::claims::add_commands}, argc, argv);
}
