// What every option of every command asks of its value.
#pragma once

#include <CLI/CLI.hpp>

namespace cria {

// An empty value is refused, but for texts to go on from. A whole number is decimal, whatever it
// begins with, and one that does not fit is refused.
void check_values(CLI::App& program);

}  // namespace cria
