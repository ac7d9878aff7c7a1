// A program outside any launch, to test operations one by one. Include after tile/target.h.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/dtype.h"
#include "tile/target.h"

namespace cria::tile::test {

template <class T = float, int Threads = 128>
struct Bare {
  using Element = T;
  struct Args {};
  static constexpr Traits traits{.threads = Threads};
};

// Calls f(p) with program `index` of the grid.
template <class K = Bare<>, class F>
void with_program(F f, Grid grid = {1}, int64_t index = 0) {
  const LaunchState state{grid};
  Program<K> p(state, index, nullptr);
  f(p);
}

// Reproducible values in [-1, 1), times scale.
template <class T = float>
std::vector<T> random_values(size_t n, unsigned seed, float scale = 1) {
  std::mt19937 bits(seed);
  std::vector<T> v(n);
  for (T& x : v) x = from_float<T>((static_cast<float>(bits() >> 8) * 0x1p-23f - 1.f) * scale);
  return v;
}

}  // namespace cria::tile::test
