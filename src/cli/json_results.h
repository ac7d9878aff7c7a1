// The file that --json names.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "base/json_fwd.h"

namespace cria {

// Adds --json FILE. A file that cannot be written is refused while the command line is read, before
// any work.
void add_json_option(CLI::App& command, std::string& path, const std::string& help);

// An Error when this file to write is one that is read, by this name or another.
void check_not_the_same(const std::string& written, const std::string& read);

// Does the work, which appends to json["results"], and writes the JSON to the file; without a name
// nothing is written. When the work is interrupted or fails, the results it has finished are
// written all the same, and without any the file stays as it was.
void write_results(const std::string& path, const Json& json, const std::function<void()>& work);

}  // namespace cria
