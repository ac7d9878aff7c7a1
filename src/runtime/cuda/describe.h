// What CUDA reports about a device.
#pragma once

#include "runtime/device.h"

namespace cria::cuda {

DeviceInfo describe(int index);

}  // namespace cria::cuda
