#include "kernels/launch.h"

#include "base/error.h"
#include "base/nearest.h"
#include "kernels/shares.h"
#include "runtime/config_table.h"
#include "runtime/recorder.h"

namespace cria {

namespace {

const KernelConfig& named_config(const Kernel& kernel, const KernelCall& call,
                                 std::string_view name, int capability) {
  for (const KernelConfig& c : kernel.configs)
    if (c.name == name && c.fits(call.args, capability)) return c;
  std::vector<std::string> names;
  for (const KernelConfig* c : kernel.fitting(call.args, capability)) names.push_back(c->name);
  if (names.empty()) fail(kernel.name + " has no configuration for " + to_string(call.dims));
  fail(kernel.name + " has no configuration '" + std::string(name) + "' for " +
       to_string(call.dims) + suggest(name, names));
}

const KernelConfig* first_suiting(const Kernel& kernel, const KernelCall& call, int capability,
                                  int cores) {
  for (const KernelConfig& c : kernel.configs)
    if (c.fits(call.args, capability) && c.suits(call.args, cores)) return &c;
  return nullptr;
}

// The first that fits and suits, else the first that fits.
const KernelConfig& first_fitting(const Kernel& kernel, const KernelCall& call, int capability,
                                  int cores) {
  if (const KernelConfig* suiting = first_suiting(kernel, call, capability, cores)) return *suiting;
  for (const KernelConfig& c : kernel.configs)
    if (c.fits(call.args, capability)) return c;
  fail(kernel.name + " has no configuration for " + to_string(call.dims));
}

}  // namespace

const KernelConfig& choose_config(const Stream& stream, const KernelCall& call,
                                  std::string_view config, const KernelRegistry& kernels) {
  const Kernel& kernel = kernels.get(call.kernel, call.dtype, target_of(stream.device()));
  const int capability = compute_capability(stream.device());
  if (!config.empty()) return named_config(kernel, call, config, capability);
  if (const std::string* tuned = tuned_config(stream.device(), kernel, shape_class(call.dims)))
    for (const KernelConfig& c : kernel.configs)
      if (c.name == *tuned && c.fits(call.args, capability)) return c;
  return untuned_config(stream, call, kernels);
}

const KernelConfig& untuned_config(const Stream& stream, const KernelCall& call,
                                   const KernelRegistry& kernels) {
  return first_fitting(kernels.get(call.kernel, call.dtype, target_of(stream.device())), call,
                       compute_capability(stream.device()),
                       kernels::cores_to_suit(stream.device()));
}

bool suits(Device device, const KernelCall& call, const KernelRegistry& kernels) {
  const Kernel* kernel = kernels.find(call.kernel, call.dtype, target_of(device));
  return kernel && first_suiting(*kernel, call, compute_capability(device),
                                 kernels::cores_to_suit(device)) != nullptr;
}

void launch(Stream& stream, const KernelCall& call, std::string_view config,
            const KernelRegistry& kernels) {
  const KernelConfig& chosen = choose_config(stream, call, config, kernels);
  record_launch(stream, call.kernel, chosen.name, call.cost,
                [&] { chosen.run(&stream, call.args); });
}

void launch(tile::Trace& trace, const KernelCall& call, std::string_view config,
            const KernelRegistry& kernels) {
  const Kernel& kernel = kernels.get(call.kernel, call.dtype, Target::trace);
  const KernelConfig& chosen = config.empty()
                                   ? first_fitting(kernel, call, 0, kernels::cores_to_suit(kCpu))
                                   : named_config(kernel, call, config, 0);
  chosen.run(&trace, call.args);
}

}  // namespace cria
