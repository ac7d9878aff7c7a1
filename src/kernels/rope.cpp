#include "kernels/rope.h"

#include <cmath>

namespace cria::kernels {

std::vector<double> rope_frequencies(double theta, int head_dim) {
  std::vector<double> out(head_dim / 2);
  for (size_t i = 0; i < out.size(); ++i) out[i] = std::pow(theta, -2.0 * double(i) / head_dim);
  return out;
}

void fill_rope_tables(std::span<const double> frequencies, Tensor<float> cos, Tensor<float> sin) {
  for (int t = 0; t < cos.rows; ++t)
    for (size_t i = 0; i < frequencies.size(); ++i) {
      cos.row(t)[i] = static_cast<float>(std::cos(t * frequencies[i]));
      sin.row(t)[i] = static_cast<float>(std::sin(t * frequencies[i]));
    }
}

}  // namespace cria::kernels
