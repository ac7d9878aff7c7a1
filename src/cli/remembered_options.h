// Options as they were given on a command line, kept as JSON, so that a later command can go on as
// if they had been given again. The JSON may come from anyone, so
// options that could do harm, such as the names of files to write, are neither kept nor taken back:
// a command marks them with CLI11's configurable(false).
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/json.h"

namespace cria {

// {"--lr": ["0.001"], ...}: all that were given.
Json given_options(const CLI::App& command);

// Gives those that this command line does not give itself. A value that an option refuses is an
// Error that names `where`; what given_options() would not have kept is passed over.
void give_options(CLI::App& command, const Json& options, const std::string& where);

}  // namespace cria
