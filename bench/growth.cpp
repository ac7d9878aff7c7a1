// growth: how a training step's time and memory grow with batch, layers and sequence length.
#include <fmt/format.h>

#include "base/durable_file.h"
#include "base/json.h"
#include "base/table.h"
#include "bench/tools.h"
#include "cli/interrupt.h"
#include "cli/problem_options.h"
#include "lab/compare.h"
#include "lab/describe_run.h"
#include "train/data.h"

namespace cria::claims {
namespace {

struct GrowthOptions {
  std::string device = "auto", json;
  std::vector<std::string> plans = {"flash", "baseline"};
  int doublings = 3, steps = 10;
};

// Small enough that the largest row takes seconds, large enough that products fill the cores.
TrainerOptions smallest(Device device) {
  const bool cuda = device.backend == Backend::cuda;
  const int dim = cuda ? 512 : 128;
  return {.model = {.dim = dim,
                    .layers = cuda ? 2 : 1,
                    .heads = dim / 32,
                    .kv_heads = dim / 64,
                    .head_dim = 32,
                    .ffn = 3 * dim,
                    .vocab = 256,
                    .context = 1 << 16},
          .device = device,
          .dtype = cuda ? DType::bf16 : DType::f32,
          .batch = cuda ? 4 : 2,
          .seq = cuda ? 512 : 128};
}

// What is doubled, row by row; everything else stays as in the first.
struct Axis {
  const char* name;
  int& (*size)(TrainerOptions&);
};
const Axis kAxes[] = {{"batch", [](TrainerOptions& o) -> int& { return o.batch; }},
                      {"layers", [](TrainerOptions& o) -> int& { return o.model.layers; }},
                      {"sequence", [](TrainerOptions& o) -> int& { return o.seq; }}};

std::vector<PlanFigures> measure_plans(const GrowthOptions& options, const TrainerOptions& how) {
  const GeneratedData data(how.model.vocab, how.batch, how.seq, 1);
  return compare_plans(
             {.trainer = how,
              .plans = options.plans,
              .steps = options.steps,
              .time_launches = false,
              .stop = &interrupted()},
             [&](int64_t step, auto tokens, auto targets) {
               data.fill_batch(uint64_t(step), Split::train, tokens, targets);
             },
             [](const std::string&, int, int) {})
      .plans;
}

std::string ratio(double now, double before) {
  return before > 0 ? fmt::format("{:.2f}", now / before) : "";
}

void run(GrowthOptions options, const std::string& command_line) {
  const Device device = parse_device(options.device);
  for (std::string& plan : options.plans) plan = find_plan(plan);
  if (!options.json.empty()) check_writable(options.json);
  std::vector<Table::Column> columns = {{"size", Table::Align::left}};
  for (const std::string& plan : options.plans)
    columns.insert(columns.end(), {{plan + " [ms]"}, {"ratio"}, {"[MiB]"}, {"ratio"}});
  Table table(columns);
  Json rows = Json::array();
  for (const Axis& axis : kAxes) {
    std::vector<PlanFigures> before(options.plans.size());
    for (int doubling = 0; doubling <= options.doublings; ++doubling) {
      TrainerOptions how = smallest(device);
      const int size = axis.size(how) <<= doubling;
      const auto figures = measure_plans(options, how);
      if (interrupted()) break;
      std::vector<std::string> row = {fmt::format("{} {}", axis.name, size)};
      for (size_t i = 0; i < figures.size(); ++i) {
        const double ms = figures[i].step_ms, bytes = double(figures[i].memory.total());
        row.insert(row.end(), {fmt::format("{:.3f}", ms), ratio(ms, before[i].step_ms),
                               fmt::format("{:.1f}", bytes / (1 << 20)),
                               ratio(bytes, double(before[i].memory.total()))});
        rows.push_back({{"axis", axis.name},
                        {"size", size},
                        {"plan", figures[i].plan},
                        {"step_ms", ms},
                        {"spread", figures[i].spread},
                        {"memory_bytes", bytes}});
      }
      table.add_row(row);
      before = figures;
    }
    table.add_rule();
  }
  const TrainerOptions first = smallest(device);
  fmt::print("a training step in {} on {}, {} wide; each row doubles what it names\n{}",
             name_of(first.dtype), name_of(device), first.model.dim, table.to_string());
  if (options.json.empty()) return;
  Json json = describe_run(device, command_line);
  json["rows"] = rows;
  write_json(options.json, json);
}

}  // namespace

void add_growth_command(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<GrowthOptions>();
  CLI::App* command = program.add_subcommand(
      "growth", "Time a training step with batch, layers and sequence doubled again and again");
  add_device_option(*command, options->device);
  command->add_option("--plans", options->plans, "Which plans")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--doublings", options->doublings, "Of each size")
      ->check(CLI::Range(0, 10))
      ->capture_default_str();
  command->add_option("--steps", options->steps, "To time for each row")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--json", options->json, "Write all figures to this file");
  command->footer("For example: cria_bench growth --plans flash --doublings 2");
  command->callback([options, &invocation] { run(*options, invocation.command_line); });
}

}  // namespace cria::claims
