// What cria_bench offers to the scripts of this folder, besides measuring the claims.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace cria::claims {

// launch: runs one kernel once, for a profiler to look at.
void add_launch_command(CLI::App& program);

// pace: times a kernel whenever a line comes in, so that another process can take turns with it.
void add_pace_command(CLI::App& program);

// decode: tokens per second of a single stream, against reading memory.
void add_decode_command(CLI::App& program, Invocation& invocation);

// growth: a training step's time and memory as batch, layers and sequence double.
void add_growth_command(CLI::App& program, Invocation& invocation);

}  // namespace cria::claims
