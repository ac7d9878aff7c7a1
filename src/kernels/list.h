// How a kernel file names what is to be compiled: each kernel with the configurations to tune over.
#pragma once

#include <tuple>

#include "base/cost.h"
#include "base/dims.h"
#include "base/dtype.h"
#include "base/tensor.h"
#include "tile/target.h"

namespace cria::kernels {

using namespace tile;

// Kernel K for memory type T in each of these configurations, the default first.
template <template <class, class> class K, class T, class... Configs>
struct KernelSpace {};

// Spaces and other lists.
template <class... Spaces>
struct KernelList {};

}  // namespace cria::kernels
