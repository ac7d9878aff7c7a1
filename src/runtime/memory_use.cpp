#include "runtime/memory_use.h"

#include <algorithm>

#include "runtime/driver.h"

namespace cria {

MemoryUse memory_use(Device device) { return driver_of(device).memory_use(device.index); }

PeakMemory::PeakMemory(Device device, Since since) : device_(device) {
  if (since == Since::process && device.backend == Backend::cpu) return;
  restart();
  base_ = most_;
}

void PeakMemory::restart() {
  driver_of(device_).forget_memory_peak(device_.index);
  const MemoryUse now = memory_use(device_);
  old_ = now.peak;
  most_ = now.used;
}

int64_t PeakMemory::bytes() {
  const MemoryUse now = memory_use(device_);
  most_ = std::max({most_, now.used, now.peak > old_ ? now.peak : 0});
  return static_cast<int64_t>(most_) - static_cast<int64_t>(base_);
}

}  // namespace cria
