// How much memory is in use and how much is left, as the operating system and the driver say it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device.h"

namespace cria {

struct MemoryUse {
  size_t free = 0;  // what could still be taken: on the CPU without swapping, within control groups
  size_t used = 0;  // on the CPU by this process, resident; on CUDA by all programs
  size_t peak = 0;  // the most of `used`; on CUDA, which does not keep it, as of now
};

MemoryUse memory_use(Device device);

// The most memory that was taken since this was made, beyond what was in use then; or, on the CPU,
// since the process began. What other programs take of a GPU in the meantime cannot be told apart.
class PeakMemory {
 public:
  enum class Since { now, process };
  explicit PeakMemory(Device device, Since since = Since::now);

  // Forgets the peak until now, not what was in use at first. Where the system does not permit it,
  // a peak counts only if it exceeds the old one.
  void restart();
  // On CUDA the most of the moments at which this was called.
  int64_t bytes();

 private:
  Device device_;
  size_t base_ = 0;  // in use at first
  size_t old_ = 0;   // a peak that is none of ours
  size_t most_ = 0;
};

}  // namespace cria
