#include "cli/json_results.h"

#include <filesystem>
#include <system_error>

#include "base/durable_file.h"
#include "base/format.h"
#include "base/json.h"

namespace cria {

void add_json_option(CLI::App& command, std::string& path, const std::string& help) {
  command.add_option("--json", path, help)
      ->check([](const std::string& file) -> std::string {
        try {
          check_writable(file);
          return "";
        } catch (const Error& error) {
          return error.what();
        }
      })
      ->option_text("FILE");
}

void check_not_the_same(const std::string& written, const std::string& read) {
  std::error_code one_is_missing;
  if (!written.empty() && std::filesystem::equivalent(written, read, one_is_missing))
    fail_f("--json {} would write over {}, which is read: give another file", written, read);
}

void write_results(const std::string& path, const Json& json, const std::function<void()>& work) {
  if (path.empty()) return work();
  try {
    work();
  } catch (...) {
    if (json.contains("results")) write_json(path, json);
    throw;
  }
  write_json(path, json);
}

}  // namespace cria
