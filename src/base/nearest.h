// "Did you mean ...?": the word that somebody may have meant by one that is not known.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cria {

// Of `known` the word most like this one: mistyped (a letter in three), or one that begins or ends
// with the other ("batch-size" and "batch", "num-steps" and "steps"). Empty when none is.
std::string nearest_word(std::string_view word, std::span<const std::string> known);

// For the end of a message about an unknown word: "; did you mean steps? Choose one of lr, steps",
// or "; choose one of lr, steps".
std::string suggest(std::string_view word, std::span<const std::string> known);

}  // namespace cria
