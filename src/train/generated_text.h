// A text to learn from when none is given: far from random, so that a falling loss is soon seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cria {

// `bytes` bytes, each a token. With 256 tokens or more it is English of a few patterns, in which
// later words follow from earlier ones; with fewer, a chain in which three tokens can follow each.
std::string generate_text(int vocab, size_t bytes, uint64_t seed);

}  // namespace cria
