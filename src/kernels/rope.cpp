#include "kernels/rope.h"

#include <cmath>

namespace cria::kernels {

std::vector<double> rope_frequencies(double theta, int head_dim) {
  std::vector<double> out(head_dim / 2);
  for (size_t i = 0; i < out.size(); ++i) out[i] = std::pow(theta, -2.0 * double(i) / head_dim);
  return out;
}

void fill_rope_tables(std::span<const double> frequencies, int positions, float* cos, float* sin) {
  for (int t = 0; t < positions; ++t)
    for (const double frequency : frequencies) {
      *cos++ = static_cast<float>(std::cos(t * frequency));
      *sin++ = static_cast<float>(std::sin(t * frequency));
    }
}

}  // namespace cria::kernels
