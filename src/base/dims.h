// Named sizes of a problem, for messages, benchmark rows and tuning keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cria {

struct Dim {
  const char* name;
  int64_t size;
};
using Dims = std::vector<Dim>;

// The largest size that kernels count in 32 bits: rounded up to a block it still fits.
inline constexpr int64_t kMostSize = INT32_MAX - 0xffff;

inline std::string to_string(const Dims& dims) {
  std::string out;
  for (const Dim& d : dims)
    out.append(out.empty() ? "" : " ").append(d.name).append("=").append(std::to_string(d.size));
  return out;
}

// Problems that should share a tuned configuration: every size rounded up to a power of two. 0, 1
// and 2 are classes of their own, so that a switch that is off is not one that is on.
inline std::string shape_class(const Dims& dims) {
  std::string out;
  for (const Dim& d : dims) {
    int64_t p = d.size > 0 ? 1 : 0;
    while (p < d.size) p *= 2;
    out.append(out.empty() ? "" : " ").append(d.name).append("<=").append(std::to_string(p));
  }
  return out;
}

}  // namespace cria
