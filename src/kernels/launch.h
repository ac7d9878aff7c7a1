// launch(stream, args): the one way kernels are run. The arguments' type names the kernel.
#pragma once

#include <string_view>

#include "kernels/list.h"
#include "runtime/kernel.h"

namespace cria {

namespace tile {
class Trace;
}

// A kernel call without its types: what launch, bench, tune and inspect work on.
struct KernelCall {
  const char* kernel;
  DType dtype;
  const void* args;
  Cost cost;
  Dims dims;
  bool costs_at_most = false;  // what it moves depends on its data: cost bounds it
};

// A kernel's arguments may say so: static constexpr bool costs_at_most = true.
template <class Args>
inline constexpr bool costs_at_most = [] {
  if constexpr (requires { Args::costs_at_most; })
    return Args::costs_at_most;
  else
    return false;
}();

template <class Args>
KernelCall call_of(const Args& args) {
  return {Args::kernel,       dtype_of<typename Args::Element>, &args, args.cost(), args.dims(),
          costs_at_most<Args>};
}

// The configuration a launch would use: the named one, else the tuned one, else the first that
// fits and suits.
const KernelConfig& choose_config(const Stream& stream, const KernelCall& call,
                                  std::string_view config = {},
                                  const KernelRegistry& kernels = kernel_registry());
// The one it would use if nothing were named or tuned.
const KernelConfig& untuned_config(const Stream& stream, const KernelCall& call,
                                   const KernelRegistry& kernels = kernel_registry());

// Whether one fits and suits: for work that can be done in another way, too.
bool suits(Device device, const KernelCall& call,
           const KernelRegistry& kernels = kernel_registry());

void launch(Stream& stream, const KernelCall& call, std::string_view config = {},
            const KernelRegistry& kernels = kernel_registry());

template <class Args>
  requires requires { Args::kernel; }
void launch(Stream& stream, const Args& args, std::string_view config = {}) {
  launch(stream, call_of(args), config);
}

// A kernel from another registry than cria's own.
template <class Args>
  requires requires { Args::kernel; }
void launch(Stream& stream, const Args& args, const KernelRegistry& kernels,
            std::string_view config = {}) {
  launch(stream, call_of(args), config, kernels);
}

// In the tracer, on operands in host memory: the named configuration, else the first that fits.
void launch(tile::Trace& trace, const KernelCall& call, std::string_view config = {},
            const KernelRegistry& kernels = kernel_registry());

template <class Args>
  requires requires { Args::kernel; }
void launch(tile::Trace& trace, const Args& args, const KernelRegistry& kernels = kernel_registry(),
            std::string_view config = {}) {
  launch(trace, call_of(args), config, kernels);
}
template <class Args>
  requires requires { Args::kernel; }
void launch(tile::Trace& trace, const Args& args, std::string_view config) {
  launch(trace, call_of(args), config);
}

}  // namespace cria
