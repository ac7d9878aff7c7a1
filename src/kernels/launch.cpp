#include "kernels/launch.h"

#include "base/error.h"
#include "runtime/config_table.h"
#include "runtime/recorder.h"

namespace cria {

const KernelConfig& choose_config(const Stream& stream, const KernelCall& call,
                                  std::string_view config) {
  const Kernel& kernel =
      kernel_registry().get(call.kernel, call.dtype, target_of(stream.device()));
  const int capability = compute_capability(stream.device());
  if (!config.empty()) {
    const KernelConfig& named = kernel.config(config);
    if (!named.fits(call.args, capability))
      fail(kernel.name + " cannot run " + to_string(call.dims) + " in configuration " + named.name +
           ": choose another, or none to let cria choose");
    return named;
  }
  if (const std::string* tuned = tuned_config(stream.device(), kernel, shape_class(call.dims)))
    for (const KernelConfig& c : kernel.configs)
      if (c.name == *tuned && c.fits(call.args, capability)) return c;
  for (const KernelConfig& c : kernel.configs)
    if (c.fits(call.args, capability)) return c;
  fail(kernel.name + " has no configuration for " + to_string(call.dims));
}

void launch(Stream& stream, const KernelCall& call, std::string_view config) {
  const KernelConfig& chosen = choose_config(stream, call, config);
  record_launch(stream, call.kernel, chosen.name, call.cost,
                [&] { chosen.run(&stream, call.args); });
}

}  // namespace cria
