// What was measured, where and how, for the head of JSON files.
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "runtime/device.h"

namespace cria {

// The commit this was built from, "+" behind it when files differ from it; or "unknown".
// Written by the build (cmake/commit.cmake).
std::string build_commit();

// Device, versions, commit, command and time.
Json describe_run(Device device, const std::string& command);

}  // namespace cria
