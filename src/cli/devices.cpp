// cria devices: what is here, and what it can do, measured.
#include <fmt/format.h>

#include "base/json.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json_results.h"
#include "lab/ceilings.h"
#include "lab/describe_run.h"

namespace cria {
namespace {

struct DevicesOptions {
  std::string device = "all";
  std::string json;
  bool quick = false;
};

std::string show_bytes(double bytes) {
  return bytes >= 1e9 ? fmt::format("{:.1f} GB", bytes / 1e9)
                      : fmt::format("{:.1f} MB", bytes / 1e6);
}

void print_description(Device device, const DeviceInfo& info) {
  const bool cuda = device.backend == Backend::cuda;
  fmt::print("{}: {}\n", name_of(device), info.name);
  fmt::print("  {} {}, {} of memory, {} of cache", info.cores, cuda ? "multiprocessors" : "cores",
             show_bytes(double(info.memory_bytes)), show_bytes(cache_bytes(device)));
  if (info.clock_mhz > 0) fmt::print(", {:.0f} MHz", info.clock_mhz);
  if (cuda)
    fmt::print(
        "\n  compute capability {}.{}, {} bytes of shared memory per program, driver {}, CUDA {}",
        info.compute_capability / 10, info.compute_capability % 10, info.shared_bytes_per_block,
        info.driver_version, info.runtime_version);
  fmt::print("\n  products: {}\n", product_library(device));
  if (const std::string why = why_no_products(device); !why.empty())
    fmt::print("  missing: {}\n", why);
}

Json show_device(Device device, const DevicesOptions& options, const std::string& command_line) {
  print_description(device, describe(device));
  Json json = describe_run(device, command_line);
  if (options.quick) return json;
  MeasureOptions how{.budget_s = 0.5, .min_rounds = 5};
  how.stop = &interrupted();
  Table table({{"ceiling, measured", Table::Align::left}, {"rate"}, {"", Table::Align::left}});
  for (const CeilingFigure& figure : measure_ceilings(device, how)) {
    table.add_row({figure.name, fmt::format("{:.4g}", figure.value), figure.unit});
    json["ceilings"][figure.name] = {{"value", figure.value}, {"unit", figure.unit}};
  }
  fmt::print("{}\n", table.to_string());
  return json;
}

void run_devices(const DevicesOptions& options, const std::string& command_line) {
  const std::vector<Device> shown =
      options.device == "all" ? devices() : std::vector{parse_device(options.device)};
  Json json = Json::array();
  for (Device device : shown) json.push_back(show_device(device, options, command_line));
  if (!options.json.empty()) write_json(options.json, json);
}

}  // namespace

void add_devices_command(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<DevicesOptions>();
  CLI::App* command = program.add_subcommand(
      "devices", "Show the devices here and what they can do, measured: copy, read, FMA, products");
  command
      ->add_option("--device", options->device,
                   "all, the default, or one: cpu, cuda, cuda:N or auto")
      ->option_text("DEVICE");
  command->add_flag("--quick", options->quick, "Measure nothing");
  add_json_option(*command, options->json, "Write the figures to this file");
  command->footer("For example: cria devices --device cpu");
  command->callback([options, &invocation] { run_devices(*options, invocation.command_line); });
}

}  // namespace cria
