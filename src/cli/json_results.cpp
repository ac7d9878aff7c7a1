#include "cli/json_results.h"

#include "base/durable_file.h"
#include "base/json.h"

namespace cria {

void write_results(const std::string& path, const Json& json, const std::function<void()>& work) {
  if (path.empty()) return work();
  check_writable(path);
  try {
    work();
  } catch (...) {
    if (json.contains("results")) write_json(path, json);
    throw;
  }
  write_json(path, json);
}

}  // namespace cria
