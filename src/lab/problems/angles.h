// The tables of rotary embedding that problems use, and their angles in double.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/rope.h"
#include "runtime/buffer.h"

namespace cria {

class Angles {
 public:
  Angles(Device device, int positions, int head_dim, bool packed)
      : positions_(positions),
        head_dim_(head_dim),
        ld_(packed ? head_dim / 2 : pitch_of(head_dim / 2)),
        cos_(device, bytes()),
        sin_(device, bytes()) {
    std::vector<float> cos(count()), sin(count());
    const int half = head_dim / 2;
    kernels::fill_rope_tables(kernels::rope_frequencies(kTheta, head_dim),
                              matrix_of(cos.data(), positions, half, ld_),
                              matrix_of(sin.data(), positions, half, ld_));
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
  size_t count() const { return size_t(positions_) * ld_; }
  size_t bytes() const { return count() * sizeof(float); }
  Tensor<const float> table(const Buffer& buffer) const {
    return matrix_of<const float>(buffer.as<float>(), positions_, head_dim_ / 2, ld_);
  }

  int positions_, head_dim_, ld_;
  Buffer cos_, sin_;
};

}  // namespace cria
