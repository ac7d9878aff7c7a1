// Options as they were given on a command line, kept as JSON, so that a later command can go on as
// if they had been given again.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string_view>

#include "base/json.h"

namespace cria {

// {"--lr": ["0.001"], ...}: all that were given, but for the `forgotten`.
Json given_options(const CLI::App& command, std::span<const std::string_view> forgotten);

// Gives those that this command line does not give itself. What the command does not know, or a
// value it refuses, is an Error that names `where`.
void give_options(CLI::App& command, const Json& options, const std::string& where);

}  // namespace cria
