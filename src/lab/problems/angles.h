// The tables of rotary embedding that problems use, and their angles in double.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/rope.h"
#include "runtime/buffer.h"

namespace cria {

class Angles {
 public:
  Angles(Device device, int positions, int head_dim)
      : positions_(positions), head_dim_(head_dim), cos_(device, bytes()), sin_(device, bytes()) {
    std::vector<float> cos(count()), sin(count());
    const int half = head_dim / 2;
    kernels::fill_rope_tables(kernels::rope_frequencies(kTheta, head_dim),
                              pitched_matrix(cos.data(), positions, half),
                              pitched_matrix(sin.data(), positions, half));
    cos_.copy_from_host(cos.data(), bytes());
    sin_.copy_from_host(sin.data(), bytes());
  }

  Tensor<const float> cos() const { return table(cos_); }
  Tensor<const float> sin() const { return table(sin_); }
  double operator()(int64_t position, int64_t pair) const {
    return double(position) * std::pow(kTheta, -2.0 * double(pair) / head_dim_);
  }

 private:
  static constexpr double kTheta = 10000;
  size_t count() const { return size_t(positions_) * pitch_of(head_dim_ / 2); }
  size_t bytes() const { return count() * sizeof(float); }
  Tensor<const float> table(const Buffer& buffer) const {
    return pitched_matrix<const float>(buffer.as<float>(), positions_, head_dim_ / 2);
  }

  int positions_, head_dim_;
  Buffer cos_, sin_;
};

}  // namespace cria
