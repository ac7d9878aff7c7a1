#include "lab/inspect.h"

#include <algorithm>

#include "base/format.h"
#include "base/json.h"
#include "base/table.h"

namespace cria {
namespace {

using tile::AccessCounts;
using tile::AccessKind;
using tile::LineCounts;

constexpr size_t kLoggedRecords = 1 << 16;  // enough to see every line of a program once

// A named configuration belongs to one kernel or a few; the other variants are left out.
std::vector<std::string> configs_of(const Variant& variant, const std::string& wanted) {
  const std::vector<std::string> fitting = fitting_configs(variant, Target::trace, 0);
  const KernelCall& call = variant.calls.at(0);
  if (fitting.empty()) fail_f("{} has no configuration for {}", call.kernel, to_string(call.dims));
  if (wanted.empty()) return {fitting[0]};
  if (wanted == "all") return fitting;
  auto named = std::ranges::find(fitting, wanted);
  if (named == fitting.end())
    named = std::ranges::find_if(fitting, [&](auto& name) { return name.starts_with(wanted); });
  if (named == fitting.end()) return {};
  return {*named};
}

std::optional<KernelResources> resources_of(const KernelCall& call, const std::string& config) {
  if (devices().size() < 2) return std::nullopt;
  const Kernel* kernel = kernel_registry().find(call.kernel, call.dtype, Target::cuda);
  if (!kernel) return std::nullopt;
  make_current(devices()[1]);
  return kernel->config(config).resources();
}

Inspection inspect_call(const KernelCall& call, const std::string& config, int64_t programs) {
  const Kernel& kernel = kernel_registry().get(call.kernel, call.dtype, Target::trace);
  Inspection out{.kernel = call.kernel,
                 .config = config,
                 .dtype = call.dtype,
                 .dims = call.dims,
                 .cost = call.cost,
                 .costs_at_most = call.costs_at_most,
                 .whole = programs == INT64_MAX,
                 .trace = tile::Trace({.program_limit = programs, .log_records = kLoggedRecords}),
                 .resources = resources_of(call, config)};
  kernel.config(config).run(&out.trace, call.args);
  return out;
}

std::string operand_name(const Inspection& inspection, int operand) {
  return operand < 0 ? "" : inspection.trace.operands()[operand].name;
}

// Empty where a figure has no meaning, so that zeros stand out.
std::string show(double value, bool has_meaning, const char* format = "{:.0f}") {
  return has_meaning ? fmt::format(fmt::runtime(format), value) : "";
}

std::vector<std::string> cells_of(const Inspection& inspection, const LineCounts& line) {
  const bool shared = is_shared(line.kind);
  const AccessCounts& n = line.counts;
  return {fmt::format("{}:{}", line.file, line.line),
          name_of(line.kind),
          operand_name(inspection, line.operand),
          std::to_string(n.requests),
          show(double(n.sectors), !shared),
          show(n.sectors_per_request(), !shared, "{:.2f}"),
          show(n.useful_bytes_per_sector(), !shared, "{:.1f}"),
          show(double(n.wavefronts), shared),
          show(double(n.conflicts), shared)};
}

std::string footprint_line(const Inspection& inspection, const char* what, double touched,
                           double declared) {
  if (!inspection.whole)
    return fmt::format("bytes {}: {:.0f} by the programs traced\n", what, touched);
  if (inspection.costs_at_most && touched <= declared)
    return fmt::format("bytes {}: {:.0f} of at most {:.0f}\n", what, touched, declared);
  return fmt::format("bytes {}: {:.0f}, declared cost {:.0f}{}\n", what, touched, declared,
                     touched == declared ? "" : "  DIFFERENT");
}

std::string resources_line(const KernelResources& r) {
  return fmt::format(
      "compiled: {} registers and {} bytes of local memory per thread, {} bytes of shared memory "
      "and {} "
      "threads per program, {} programs per multiprocessor\n",
      r.registers, r.local_bytes, r.shared_bytes, r.threads, r.blocks_per_core);
}

}  // namespace

std::vector<Inspection> inspect(Problem& problem, const InspectOptions& options) {
  require(problem.stream().device() == kCpu, "inspect: the operands must be in host memory");
  std::vector<Inspection> out;
  for (const Variant& variant : problem.variants())
    for (const std::string& config : configs_of(variant, options.config)) {
      out.push_back(inspect_call(variant.calls.at(0), config, options.programs));
      out.back().packed = problem.packed();
    }
  if (out.empty()) fail_unknown_config(problem, options.config, Target::trace, 0);
  return out;
}

std::string to_table(const Inspection& inspection) {
  using enum Table::Align;
  const tile::Trace& trace = inspection.trace;
  Table table({{"line", left},
               {"access", left},
               {"operand", left},
               {"requests"},
               {"sectors"},
               {"/request"},
               {"useful"},
               {"wavefronts"},
               {"conflicts"}});
  for (const LineCounts& line : trace.lines()) table.add_row(cells_of(inspection, line));
  std::string out = fmt::format("{} {} {}: {}{}\n", inspection.kernel, name_of(inspection.dtype),
                                inspection.config, to_string(inspection.dims),
                                inspection.packed ? " packed" : "");
  out += table.to_string();
  out += footprint_line(inspection, "read", double(trace.unique_bytes_read()),
                        inspection.cost.bytes_read);
  out += footprint_line(inspection, "written", double(trace.unique_bytes_written()),
                        inspection.cost.bytes_written);
  if (inspection.resources) out += resources_line(*inspection.resources);
  return out;
}

Json to_json(const Inspection& inspection) {
  const tile::Trace& trace = inspection.trace;
  Json json = {{"kernel", inspection.kernel},
               {"config", inspection.config},
               {"dtype", name_of(inspection.dtype)},
               {"dims", Json::object()},
               {"lines", Json::array()}};
  for (const Dim& dim : inspection.dims) json["dims"][dim.name] = dim.size;
  for (const LineCounts& line : trace.lines())
    json["lines"].push_back({{"file", line.file},
                             {"line", line.line},
                             {"access", name_of(line.kind)},
                             {"operand", operand_name(inspection, line.operand)},
                             {"requests", line.counts.requests},
                             {"sectors", line.counts.sectors},
                             {"useful_bytes", line.counts.useful_bytes},
                             {"wavefronts", line.counts.wavefronts},
                             {"conflicts", line.counts.conflicts}});
  if (inspection.packed) json["packed"] = true;
  json["unique_bytes_read"] = trace.unique_bytes_read();
  json["unique_bytes_written"] = trace.unique_bytes_written();
  json["declared_bytes_read"] = inspection.cost.bytes_read;
  json["declared_bytes_written"] = inspection.cost.bytes_written;
  json["declared_at_most"] = inspection.costs_at_most;
  if (const auto& r = inspection.resources)
    json["resources"] = {{"registers", r->registers},
                         {"local_bytes", r->local_bytes},
                         {"shared_bytes", r->shared_bytes},
                         {"threads", r->threads},
                         {"programs_per_core", r->blocks_per_core}};
  return json;
}

}  // namespace cria
