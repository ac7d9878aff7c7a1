// Which GPUs a binary holds code for.
#pragma once

#include <string>
#include <string_view>

namespace cria {

inline constexpr int kLeastComputeCapability = 80;

// Whether code for `architectures`, separated by commas ("80-real,90a-real"),
// runs on a GPU of this compute capability (90 is 9.0). Machine code runs within its major version,
// from its minor version on; PTX on everything newer; either of an architecture with a letter on
// that one alone.
bool has_gpu_code(std::string_view architectures, int compute_capability);

// Why such a GPU cannot be used and what to do about it, as the end of a sentence; empty if it can.
std::string why_unusable(std::string_view architectures, int compute_capability);

}  // namespace cria
