// cria_bench: measures the claims of this folder; see also tools.h. The exit status is 1 when a
// claim is not met, cannot be measured, or some result is wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <map>

#include "base/error.h"
#include "bench/tools.h"
#include "bench/verdict.h"
#include "cli/interrupt.h"
#include "cli/problem_options.h"
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
  std::vector<Claim> chosen;
  std::string names;
  for (const auto& [name, claims] : device.backend == Backend::cuda ? kGpuClaims : kCpuClaims) {
    names += (names.empty() ? "" : ", ") + std::string(name);
    const bool wanted = options.only.empty() || std::find(options.only.begin(), options.only.end(),
                                                          name) != options.only.end();
    if (!wanted) continue;
    for (Claim& claim : claims()) chosen.push_back(std::move(claim));
  }
  if (chosen.empty()) fail("there are no such claims for this device; choose from: " + names);
  return chosen;
}

// Whether all is as claimed.
bool run_claims(const ClaimsOptions& options, const std::string& command_line) {
  const Device device = parse_device(options.device);
  const std::vector<Verdict> verdicts =
      judge(chosen_claims(options, device), {device, options.seconds, &interrupted()});
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
      ->capture_default_str();
  command->add_option("--json", options->json, "Write all figures to this file");
  command->callback([options, &invocation] {
    invocation.exit_code = run_claims(*options, invocation.command_line) ? 0 : 1;
  });
}

int run(int argc, char** argv) {
  CLI::App program("cria_bench: the measured claims");
  program.require_subcommand(1);
  Invocation invocation{.command_line =
                            fmt::format("cria_bench {}", fmt::join(argv + 1, argv + argc, " "))};
  add_claims_command(program, invocation);
  add_launch_command(program);
  add_pace_command(program);
  add_decode_command(program, invocation);
  add_growth_command(program, invocation);
  CLI11_PARSE(program, argc, argv);
  return invocation.exit_code;
}

}  // namespace
}  // namespace cria::claims

int main(int argc, char** argv) {
  try {
    return cria::claims::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "cria_bench: {}\n", error.what());
    return 2;
  }
}
