#include "kernels/rope.h"

#include <cmath>

namespace cria::kernels {

void fill_rope_tables(double theta, int positions, int head_dim, float* cos, float* sin) {
  const int half = head_dim / 2;
  for (int i = 0; i < half; ++i) {
    const double frequency = std::pow(theta, -2.0 * i / head_dim);
    for (int t = 0; t < positions; ++t) {
      cos[int64_t{t} * half + i] = static_cast<float>(std::cos(t * frequency));
      sin[int64_t{t} * half + i] = static_cast<float>(std::sin(t * frequency));
    }
  }
}

}  // namespace cria::kernels
