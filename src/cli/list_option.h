// Options that take several values: 1,2,3 as well as 1 2 3.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace cria {

// Between commas there must be something, and numbers are decimal ones that fit.
template <class T>  // int32_t, int64_t or std::string
CLI::Option* add_list_option(CLI::App& command, const std::string& name, std::vector<T>& values,
                             const std::string& help);

}  // namespace cria
