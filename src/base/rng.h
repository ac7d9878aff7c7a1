// Counter-based random numbers: the n-th value depends on (seed, stream, n) only, so any part of a
// sequence can be made anywhere. The same bits on every platform, normal numbers included.
#pragma once

#include <cstdint>
#include <span>

namespace cria {

class Rng {
 public:
  // Different streams of one seed are independent, e.g. one per tensor.
  explicit Rng(uint64_t seed, uint64_t stream = 0);

  uint64_t bits();                 // 64 random bits
  uint32_t below(uint32_t bound);  // uniform in [0, bound); bound > 0
  double uniform();                // [0, 1), 53 bits
  double normal();                 // mean 0, standard deviation 1

  void fill_normal(std::span<float> out, float stddev);

  // The index of the next value; every call above but fill_normal consumes exactly one.
  uint64_t position() const { return position_; }
  void seek(uint64_t position) { position_ = position; }

 private:
  uint64_t key_;
  uint64_t position_ = 0;
};

// The x with P(N(0,1) < x) = p, for 0 < p < 1; relative error about 1e-15.
double normal_quantile(double p);

}  // namespace cria
