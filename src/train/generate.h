// Text from a model: a prompt goes in, tokens come out one by one.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "plans/decoder.h"
#include "train/sampler.h"

namespace cria {

// Called with each token; generation ends when it gives false.
using OnToken = std::function<bool(int32_t token)>;

// Up to `most` tokens after the prompt; fewer when `eos` comes or the decoder's cache is full.
std::vector<int32_t> generate(Decoder& decoder, TokenSampler& sampler,
                              std::span<const int32_t> prompt, int most, std::optional<int32_t> eos,
                              const OnToken& on_token = {});

}  // namespace cria
