#include "train/generate.h"

#include <algorithm>

namespace cria {

std::vector<int32_t> prompt_tokens(const Tokenizer& tokenizer, std::string_view prompt) {
  std::vector<int32_t> out = tokenizer.encode(prompt);
  if (tokenizer.bos()) out.insert(out.begin(), *tokenizer.bos());
  return out.empty() ? tokenizer.encode("\n") : out;
}

std::vector<int32_t> generate(Decoder& decoder, TokenSampler& sampler,
                              std::span<const int32_t> prompt, int most,
                              std::span<const int32_t> ends, const OnToken& on_token) {
  std::vector<int32_t> out;
  std::span<const float> logits = decoder.feed(prompt);
  while (std::ssize(out) < most) {
    const int32_t token = sampler.sample(logits);
    if (std::ranges::find(ends, token) != ends.end()) break;
    out.push_back(token);
    if (on_token && !on_token(token)) break;
    if (std::ssize(out) == most || decoder.length() == decoder.capacity()) break;
    logits = decoder.feed({&token, 1});
  }
  return out;
}

}  // namespace cria
