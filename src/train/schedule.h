// The learning rate over a run: a linear warm-up, then half a cosine down to a fraction of the
// peak.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace cria {

struct Schedule {
  float peak = 3e-4f;
  int64_t warmup = 100;      // steps
  int64_t steps = 1000;      // of the whole run
  float final_share = 0.1f;  // of the peak: where the cosine ends, one step after the last

  float rate(int64_t step) const {
    if (step < warmup) return peak * static_cast<float>(step + 1) / static_cast<float>(warmup);
    if (steps <= warmup) return peak;
    const double done = std::min(1.0, double(step - warmup) / double(steps - warmup));
    const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * done));
    return static_cast<float>(peak * (final_share + (1 - final_share) * cosine));
  }
};

}  // namespace cria
