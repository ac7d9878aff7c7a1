// The names of JSON values, for headers that only pass them on; base/json.h has the rest.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace cria {

using Json = nlohmann::ordered_json;  // keeps the order of keys; looks them up one by one
using JsonMap = nlohmann::json;       // for objects of many thousand keys

}  // namespace cria
