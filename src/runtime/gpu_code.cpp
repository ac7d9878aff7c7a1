#include "runtime/gpu_code.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"

namespace cria {
namespace {

bool runs(std::string_view architecture, int compute_capability) {
  int least = 0;
  const char* const end = architecture.data() + architecture.size();
  const auto [rest, error] = std::from_chars(architecture.data(), end, least);
  if (error != std::errc()) return true;  // "native", "all": what nvcc makes of it
  const std::string_view kind(rest, end - rest);
  if (!kind.empty() && kind.front() != '-') return compute_capability == least;
  const bool same_major = compute_capability / 10 == least / 10;
  return compute_capability >= least && (same_major || kind != "-real");
}

}  // namespace

bool has_gpu_code(std::string_view architectures, int compute_capability) {
  while (!architectures.empty()) {
    const size_t end = std::min(architectures.find(','), architectures.size());
    if (runs(architectures.substr(0, end), compute_capability)) return true;
    architectures.remove_prefix(std::min(end + 1, architectures.size()));
  }
  return false;
}

std::string why_unusable(std::string_view architectures, int compute_capability) {
  const std::string version =
      fmt::format("{}.{}", compute_capability / 10, compute_capability % 10);
  if (compute_capability < kLeastComputeCapability)
    return fmt::format("its compute capability is {}, and cria needs {}.{} or newer", version,
                       kLeastComputeCapability / 10, kLeastComputeCapability % 10);
  if (!has_gpu_code(architectures, compute_capability))
    return fmt::format(
        "its compute capability is {}, and this cria was built for {}: build it on this machine "
        "with 'make'",
        version, architectures);
  return "";
}

}  // namespace cria
