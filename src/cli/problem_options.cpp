#include "cli/problem_options.h"

#include <algorithm>

#include "base/format.h"
#include "cli/list_option.h"

namespace cria {
namespace {

// Options of the same name mean the same size to every problem.
std::vector<Parameter> all_parameters() {
  std::vector<Parameter> all;
  for (const ProblemSpec& spec : problem_specs())
    for (const Parameter& parameter : spec.parameters)
      if (std::none_of(all.begin(), all.end(),
                       [&](const Parameter& p) { return p.name == parameter.name; }))
        all.push_back(parameter);
  return all;
}

DType default_dtype(const ProblemSpec& spec, Device device) {
  const bool bf16 = device.backend == Backend::cuda &&
                    kernel_registry().find(spec.kernels.at(0), DType::bf16, Target::cuda);
  return bf16 ? DType::bf16 : DType::f32;
}

}  // namespace

std::vector<ProblemRequest> ProblemOptions::requests() const {
  const Device where = parse_device(device);
  const DType type = dtype.empty() ? default_dtype(spec(), where) : parse_dtype(dtype);
  std::vector<ProblemRequest> all = {{.device = where, .dtype = type, .packed = packed}};
  for (const auto& [name, values] : sizes) {
    if (values.empty()) continue;
    std::vector<ProblemRequest> combined;
    for (const ProblemRequest& request : all)
      for (int64_t value : values) {
        combined.push_back(request);
        combined.back().sizes[name] = value;
      }
    all = std::move(combined);
  }
  return all;
}

void add_problem_options(CLI::App& command, ProblemOptions& options) {
  command.add_option("KERNEL", options.kernel, "Which kernel; see the list below")
      ->required()
      ->option_text(" ");
  for (const Parameter& parameter : all_parameters()) {
    const std::string alias = parameter.alias.empty() ? "" : ",--" + parameter.alias;
    add_list_option(command, "--" + parameter.name + alias, options.sizes[parameter.name],
                    parameter.help)
        ->option_text("N,...");
  }
  command
      .add_option("--dtype", options.dtype,
                  "Element type: f32, bf16 or f16 (default: bf16 on CUDA, f32 on the CPU)")
      ->option_text("TYPE");
  command.add_flag(
      "--packed", options.packed,
      "Rows of operands without gaps (default: each at whole 16 bytes, as plans lay them out)");
}

void add_device_option(CLI::App& command, std::string& device) {
  command
      .add_option("--device", device,
                  "cpu, cuda, cuda:N, or auto, the default: the first GPU, else the CPU")
      ->option_text("DEVICE");
}

void add_cache_option(CLI::App& command, std::string& cache) {
  command
      .add_option("--cache", cache,
                  "File of tuned configurations (default: CRIA_CACHE, else "
                  "XDG_CACHE_HOME/cria/tuned.json, else ~/.cache/cria/tuned.json)")
      ->option_text("FILE");
}

std::string list_problems() {
  std::string out = "Kernels, with the default sizes on the CPU and on CUDA:\n";
  for (const ProblemSpec& spec : problem_specs()) {
    out += fmt::format("  {:<23}{}\n{:25}", spec.name, spec.summary, "");
    for (const Parameter& p : spec.parameters)
      out += p.on_cpu == p.on_cuda ? fmt::format("--{} {} ", p.name, p.on_cpu)
                                   : fmt::format("--{} {}|{} ", p.name, p.on_cpu, p.on_cuda);
    out.back() = '\n';
  }
  out.pop_back();
  return out;
}

}  // namespace cria
