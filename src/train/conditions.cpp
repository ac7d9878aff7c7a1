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
constexpr const char* kChoices = "choices";  // by stage and exact sizes (plans/choice.h)

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
  for (const Choice& c : trainer.choices())
    out[kChoices][fmt::format("{} of {} x {} x {}", name_of(c.stage), c.sizes.m, c.sizes.n,
                              c.sizes.k)] = c.own ? "cria" : "the library";
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
  const Json none = Json::object();
  const Json &chosen = then.contains(kChoices) ? then[kChoices] : none,
             &chosen_now = now.contains(kChoices) ? now[kChoices] : none;
  if (chosen.is_object() && chosen_now.is_object())
    for (const auto& [stage, by] : chosen_now.items()) {
      const std::string before = text(chosen, stage.c_str()),
                        after = text(chosen_now, stage.c_str());
      if (!before.empty() && before != after)
        parts.push_back(fmt::format("{} by {} then, by {} now", stage, before, after));
    }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace cria
