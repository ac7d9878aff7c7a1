// The tables of rotary embedding in device memory.
#pragma once

#include <span>
#include <vector>

#include "base/tensor.h"
#include "kernels/rope.h"
#include "runtime/buffer.h"

namespace cria {

struct RopeTables {
  Tensor<const float> cos, sin;  // [S, K/2]
};

// Takes a new buffer on the device of the one given.
inline RopeTables upload_rope_tables(std::span<const double> frequencies, int positions,
                                     Buffer& buffer) {
  const int half = static_cast<int>(frequencies.size());
  const int64_t count = positions * pitch_of(int64_t{half});
  std::vector<float> tables(2 * count);
  const auto cos = pitched_matrix(tables.data(), positions, half);
  const auto sin = pitched_matrix(tables.data() + count, positions, half);
  kernels::fill_rope_tables(frequencies, cos, sin);
  buffer = Buffer(buffer.device(), tables.size() * sizeof(float));
  buffer.copy_from_host(tables.data(), buffer.bytes());
  const float* data = buffer.as<float>();
  return {pitched_matrix(data, positions, half), pitched_matrix(data + count, positions, half)};
}

}  // namespace cria
