#include "train/generated_text.h"

#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "base/rng.h"

namespace cria {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::string_view kNames[] = {"Ana", "Bruno", "Carla", "Diego", "Elena", "Felix"};
constexpr std::string_view kAnimals[] = {"llama", "alpaca", "condor", "puma", "fox", "goat"};
constexpr std::string_view kColours[] = {"white", "brown", "grey", "black"};
constexpr std::string_view kPlaces[] = {"the river", "the hill", "the village", "the old bridge"};
constexpr std::string_view kGifts[] = {"a blanket", "an apple", "a bell", "a letter"};
constexpr std::string_view kVerbs[] = {"walks to", "sleeps near", "runs from", "looks at"};

std::string_view pick(Words words, Rng& rng) {
  return words[rng.below(static_cast<uint32_t>(words.size()))];
}

// Words come back within a sentence, so that a model which looks back does better.
std::string sentence(Rng& rng) {
  switch (rng.below(4)) {
    case 0: {
      const auto colour = pick(kColours, rng), animal = pick(kAnimals, rng);
      const auto verb = pick(kVerbs, rng), place = pick(kPlaces, rng);
      return fmt::format("The {1} {0} {2} {3}, and {3} is quiet when the {1} {0} comes.\n", animal,
                         colour, verb, place);
    }
    case 1: {
      const auto giver = pick(kNames, rng), gift = pick(kGifts, rng);
      std::string_view taker = pick(kNames, rng);
      while (taker == giver) taker = pick(kNames, rng);
      return fmt::format("{0} gives {1} {2}. {1} thanks {0} for {2}.\n", giver, taker, gift);
    }
    case 2: {
      const uint32_t a = rng.below(10), b = rng.below(10);
      return fmt::format("{} and {} make {}.\n", a, b, a + b);
    }
    default: {
      const auto name = pick(kNames, rng), animal = pick(kAnimals, rng);
      return fmt::format("\"Where is your {1}?\" asks {0}. \"My {1} is at {2}, {0}.\"\n", name,
                         animal, pick(kPlaces, rng));
    }
  }
}

std::string sentences(size_t bytes, Rng& rng) {
  std::string out;
  while (out.size() < bytes) out += sentence(rng);
  out.resize(bytes);
  return out;
}

std::string chain(uint32_t vocab, size_t bytes, Rng& rng) {
  std::vector<uint32_t> next(3 * vocab);
  for (uint32_t& token : next) token = rng.below(vocab);
  std::string out;
  uint32_t token = 0;
  while (out.size() < bytes) {
    out.push_back(static_cast<char>(token));
    token = next[3 * token + rng.below(3)];
  }
  return out;
}

}  // namespace

std::string generate_text(int vocab, size_t bytes, uint64_t seed) {
  require(vocab > 0, "generate_text: a vocabulary is needed");
  Rng rng(seed);
  return vocab >= 256 ? sentences(bytes, rng) : chain(static_cast<uint32_t>(vocab), bytes, rng);
}

}  // namespace cria
