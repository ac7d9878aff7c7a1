// What a kernel does to memory, from the tracer: tables per source line and operand, and what the
// compiler made of it where there is a GPU. The operands are in host memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "lab/problem.h"
#include "tile/trace/analysis.h"

namespace cria {

struct Inspection {
  std::string kernel;
  std::string config;
  DType dtype = DType::f32;
  Dims dims;
  Cost cost;                   // declared
  bool costs_at_most = false;  // it bounds what depends on data
  bool whole = true;           // every program was traced
  bool packed = false;         // ProblemRequest::packed
  tile::Trace trace;
  std::optional<KernelResources> resources;  // where there is a GPU
};

struct InspectOptions {
  std::string config;  // empty: each kernel's first that fits; "all"; or how a name begins
  int64_t programs = INT64_MAX;  // traced at most, from the first
};

// Traces every kernel of a problem, whose device must be the CPU.
std::vector<Inspection> inspect(Problem& problem, const InspectOptions& options);

// Per source line and operand: requests, sectors, useful bytes, wavefronts and conflicts; then the
// bytes touched against the kernel's declared cost.
std::string to_table(const Inspection& inspection);

Json to_json(const Inspection& inspection);

}  // namespace cria
