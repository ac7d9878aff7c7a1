#include "train/conditions.h"

#include <fmt/ranges.h>

#include <map>
#include <string>
#include <vector>

#include "runtime/cpu/cores.h"
#include "runtime/product.h"
#include "runtime/thread_pool.h"

namespace cria {
namespace {

// The configurations that a kernel ran in.
using Configurations = std::map<std::string, std::vector<std::string>>;

constexpr const char* kConfigurations = "configurations";

std::string text(const Json& conditions, const char* key) {
  const bool given = conditions.contains(key) && conditions[key].is_string();
  return given ? conditions[key].get<std::string>() : "";
}

Configurations configurations_in(const Json& conditions) {
  Configurations out;
  if (!conditions.contains(kConfigurations) || !conditions[kConfigurations].is_object()) return out;
  for (const auto& [kernel, names] : conditions[kConfigurations].items())
    for (const Json& name : names)
      if (name.is_string()) out[kernel].push_back(name);
  return out;
}

}  // namespace

Json conditions_of(const Trainer& trainer) {
  const Device device = trainer.options().device;
  Json out = {{"device", describe(device).name}, {"products", product_library(device)}};
  if (device.backend == Backend::cpu) {
    out["workers"] = ThreadPool::shared().workers();
    out["instruction_set"] = instruction_set();
  }
  for (const auto& [kernel, names] : trainer.configurations())
    for (const std::string& name : names) out[kConfigurations][kernel].push_back(name);
  return out;
}

std::string differences(const Json& then, const Json& now) {
  std::vector<std::string> parts;
  const auto compare = [&](const char* key, const std::string& what) {
    const std::string before = text(then, key), after = text(now, key);
    if (!before.empty() && !after.empty() && before != after)
      parts.push_back(fmt::format("{} {} then, {} now", what, before, after));
  };
  compare("device", "on");
  compare("instruction_set", "with");
  compare("products", "products by");
  const Configurations before = configurations_in(then), after = configurations_in(now);
  std::vector<std::string> kernels;
  for (const auto& [kernel, names] : after)
    if (const auto found = before.find(kernel); found != before.end() && found->second != names)
      kernels.push_back(fmt::format("{} as {} then, as {} now", kernel,
                                    fmt::join(found->second, " and "), fmt::join(names, " and ")));
  if (!kernels.empty()) parts.push_back(fmt::format("kernels {}", fmt::join(kernels, ", ")));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace cria
