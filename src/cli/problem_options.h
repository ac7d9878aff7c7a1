// The options of commands that run a problem: which one, its sizes, element type, device and cache.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "lab/problem.h"

namespace cria {

struct ProblemOptions {
  std::string kernel;
  std::string device = "auto";
  std::string dtype;  // empty: bf16 on CUDA where the kernel has it, else f32
  std::map<std::string, std::vector<int64_t>> sizes;
  std::string cache;  // empty: as the environment says
  bool packed = false;

  const ProblemSpec& spec() const { return find_problem(kernel); }
  // One request for each combination of the sizes given.
  std::vector<ProblemRequest> requests() const;
};

// KERNEL, the sizes of all problems, --dtype, --packed and, where asked for, --device and --cache.
void add_problem_options(CLI::App& command, ProblemOptions& options);
void add_device_option(CLI::App& command, std::string& device);
void add_cache_option(CLI::App& command, std::string& cache);

// All problems with their sizes, for the end of a command's help.
std::string list_problems();

}  // namespace cria
