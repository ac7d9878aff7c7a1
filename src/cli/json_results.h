// The file that --json names, for commands whose work takes long.
#pragma once

#include <functional>
#include <string>

#include "base/json_fwd.h"

namespace cria {

// Does the work, which appends to json["results"], and writes the JSON to the file; without a name
// nothing is written. A file that cannot be written is refused before the work. When the work is
// interrupted or fails, the results it has finished are written all the same, and without any the
// file stays as it was.
void write_results(const std::string& path, const Json& json, const std::function<void()>& work);

}  // namespace cria
