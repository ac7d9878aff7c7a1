// What was measured, where and how, for the head of JSON files.
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "runtime/device.h"

namespace cria {

// Device, versions, command and time.
Json describe_run(Device device, const std::string& command);

}  // namespace cria
