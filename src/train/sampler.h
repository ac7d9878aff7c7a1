// Choosing the next token from logits.
#pragma once

#include <cstdint>
#include <span>

#include "base/rng.h"

namespace cria {

struct SamplerOptions {
  float temperature = 0.8f;  // 0 takes the likeliest token
  int top_k = 0;             // only the k likeliest; 0: all
  float top_p = 1;           // only the likeliest that together have this probability
  uint64_t seed = 0;
};

// The same seed and logits give the same tokens.
class TokenSampler {
 public:
  explicit TokenSampler(const SamplerOptions& options);

  int32_t sample(std::span<const float> logits);

 private:
  SamplerOptions options_;
  Rng rng_;
};

}  // namespace cria
