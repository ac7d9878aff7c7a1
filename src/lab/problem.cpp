#include "lab/problem.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "base/nearest.h"
#include "lab/problems/problems.h"

namespace cria {
namespace {

constexpr int kMaxSets = 24;

[[noreturn]] void fail_unknown_problem(std::string_view name) {
  std::vector<std::string> names;
  for (const ProblemSpec& spec : problem_specs()) names.push_back(spec.name);
  fail_f("there is no kernel '{}'{}", name, suggest(name, names));
}

void complete_sizes(const ProblemSpec& spec, ProblemRequest& request) {
  std::string flags;
  for (const Parameter& p : spec.parameters) flags += (flags.empty() ? "--" : ", --") + p.name;
  for (const auto& [name, value] : request.sizes) {
    const auto known = std::find_if(spec.parameters.begin(), spec.parameters.end(),
                                    [&](const Parameter& p) { return p.name == name; });
    if (known == spec.parameters.end())
      fail_f("--{} does not apply to {}, which takes {}", name, spec.name, flags);
    if (value < known->least || value > known->most)
      fail_f("--{} {} is out of range: use {} to {}", name, value, known->least, known->most);
  }
  for (const Parameter& p : spec.parameters)
    request.sizes.try_emplace(p.name,
                              request.device.backend == Backend::cuda ? p.on_cuda : p.on_cpu);
}

// Fails in one sentence when the kernels are not built for the type or cannot do the shape.
void check_runnable(Problem& problem) {
  for (const Variant& variant : problem.variants())
    choose_config(problem.stream(), variant.calls.at(0));
}

}  // namespace

int ProblemRequest::operator[](const std::string& parameter) const {
  return static_cast<int>(sizes.at(parameter));
}

int ProblemRequest::product(const std::vector<std::string>& parameters, int factor) const {
  double product = factor;
  std::string names;
  for (const std::string& name : parameters) {
    product *= double(sizes.at(name));
    names += fmt::format("{}--{} {}", names.empty() ? "" : " times ", name, sizes.at(name));
  }
  if (product > kMostSize)
    fail_f("{}{} is more than the {} that kernels can count: make one of them smaller", names,
           factor > 1 ? fmt::format(" times {}", factor) : "", kMostSize);
  return static_cast<int>(product);
}

void Variant::run(Stream& stream, int turn, std::string_view config) const {
  launch(stream, calls[turn % calls.size()], config);
  if (after) after(stream, turn);
}

Problem::Problem(const ProblemRequest& request) : request_(request), stream_(request.device) {}

void Problem::plan_sets(double bytes_per_set) {
  const double rotated = 3.0 * cache_bytes(device());
  sets_ =
      request_.sets > 0
          ? request_.sets
          : static_cast<int>(std::clamp(std::ceil(rotated / bytes_per_set), 1.0, double(kMaxSets)));
}

const Operand& Problem::input(int batch, Extent rows, Extent cols, float scale, float mean) {
  return input_of(dtype(), batch, rows, cols, scale, mean);
}

const Operand& Problem::input_of(DType type, int batch, Extent rows, Extent cols, float scale,
                                 float mean) {
  const Values values{.phase = 99991 * (operands_.size() + 1), .scale = scale, .mean = mean};
  operands_.push_back(
      std::make_unique<Operand>(stream_, type, OperandShape{batch, rows, cols, packed()}, values));
  return *operands_.back();
}

const Operand& Problem::output(int batch, Extent rows, Extent cols) {
  return output_of(dtype(), batch, rows, cols);
}

const Operand& Problem::output_of(DType type, int batch, Extent rows, Extent cols) {
  const Operand& made = scratch_of(type, batch, rows, cols);
  outputs_.push_back(operands_.back().get());
  return made;
}

const Operand& Problem::scratch_of(DType type, int batch, Extent rows, Extent cols) {
  operands_.push_back(
      std::make_unique<Operand>(stream_, type, OperandShape{batch, rows, cols, packed()}));
  return *operands_.back();
}

void Problem::add_call(const std::string& name, KernelCall call, std::shared_ptr<const void> args) {
  args_.push_back(std::move(args));
  variant(name).calls.push_back(std::move(call));
}

void Problem::set_after(const std::string& name, std::function<void(Stream&, int turn)> after) {
  variant(name).after = std::move(after);
}

Variant& Problem::variant(const std::string& name) {
  for (Variant& v : variants_)
    if (v.name == name) return v;
  return variants_.emplace_back(Variant{.name = name});
}

Accuracy Problem::check(const std::function<void(Stream&, int turn)>& solve) {
  prepare(stream_);
  for (Operand* output : outputs_) output->poison(stream_);
  solve(stream_, 0);
  stream_.synchronize();
  return check_results();
}

const std::vector<ProblemSpec>& problem_specs() {
  static const std::vector<ProblemSpec> specs = all_problems();
  return specs;
}

const ProblemSpec& find_problem(std::string_view name) {
  for (const ProblemSpec& spec : problem_specs())
    if (spec.name == name) return spec;
  for (const ProblemSpec& spec : problem_specs())
    if (std::find(spec.kernels.begin(), spec.kernels.end(), name) != spec.kernels.end())
      return spec;
  fail_unknown_problem(name);
}

std::vector<std::string> fitting_configs(const Variant& variant, Target target,
                                         int compute_capability) {
  const KernelCall& call = variant.calls.at(0);
  const Kernel& kernel = kernel_registry().get(call.kernel, call.dtype, target);
  std::vector<std::string> names;
  for (const KernelConfig* config : kernel.fitting(call.args, compute_capability))
    names.push_back(config->name);
  return names;
}

void fail_unknown_config(const Problem& problem, std::string_view name, Target target,
                         int compute_capability) {
  std::vector<std::string> all;
  for (const Variant& variant : problem.variants())
    for (const std::string& config : fitting_configs(variant, target, compute_capability))
      if (std::ranges::find(all, config) == all.end()) all.push_back(config);
  fail_f("there is no configuration '{}' for {}{}", name, to_string(problem.dims()),
         suggest(name, all));
}

std::unique_ptr<Problem> make_problem(const ProblemSpec& spec, ProblemRequest request) {
  complete_sizes(spec, request);
  kernel_registry().get(spec.kernels.at(0), request.dtype, target_of(request.device));
  std::unique_ptr<Problem> problem = spec.make(request);
  check_runnable(*problem);
  return problem;
}

}  // namespace cria
