// launch(stream, args): the one way kernels are run. The arguments' type names the kernel.
#pragma once

#include <string_view>

#include "kernels/list.h"
#include "runtime/kernel.h"

namespace cria {

// A kernel call without its types: what launch, bench, tune and inspect work on.
struct KernelCall {
  const char* kernel;
  DType dtype;
  const void* args;
  Cost cost;
  Dims dims;
};

template <class Args>
KernelCall call_of(const Args& args) {
  return {Args::kernel, dtype_of<typename Args::Element>, &args, args.cost(), args.dims()};
}

// The configuration a launch would use: the named one, else the tuned one, else the first that fits.
const KernelConfig& choose_config(const Stream& stream, const KernelCall& call,
                                  std::string_view config = {});

void launch(Stream& stream, const KernelCall& call, std::string_view config = {});

template <class Args>
  requires requires { Args::kernel; }
void launch(Stream& stream, const Args& args, std::string_view config = {}) {
  launch(stream, call_of(args), config);
}

}  // namespace cria
