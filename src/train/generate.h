// Text from a model: a prompt goes in, tokens come out one by one.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "model/tokenizer.h"
#include "plans/decoder.h"
#include "train/sampler.h"

namespace cria {

// A prompt as a model expects it: after its tokenizer's beginning of a text, if there is one; a new
// line where it would be nothing at all.
std::vector<int32_t> prompt_tokens(const Tokenizer& tokenizer, std::string_view prompt);

// Called with each token; generation ends when it gives false.
using OnToken = std::function<bool(int32_t token)>;

// Up to `most` tokens after the prompt; fewer when one of `ends` comes or the decoder's cache is full.
std::vector<int32_t> generate(Decoder& decoder, TokenSampler& sampler,
                              std::span<const int32_t> prompt, int most,
                              std::span<const int32_t> ends, const OnToken& on_token = {});

}  // namespace cria
