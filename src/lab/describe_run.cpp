#include "lab/describe_run.h"

#include <chrono>

#include "base/json.h"
#include "runtime/product.h"

namespace cria {

Json describe_run(Device device, const std::string& command) {
  const DeviceInfo info = describe(device);
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  return {{"command", command},
          {"commit", build_commit()},
          {"device", name_of(device)},
          {"device_name", info.name},
          {"cores", info.cores},
          {"device_memory_bytes", info.memory_bytes},
          {"clock_mhz", info.clock_mhz},
          {"driver", info.driver_version},
          {"runtime", info.runtime_version},
          {"library", product_library(device)},
          {"unix_time", now.count()}};
}

}  // namespace cria
