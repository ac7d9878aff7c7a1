// How tokenizers cut a text into words before merging. The regular expressions of known tokenizers
// are matched by hand; a pattern that is not known is not guessed at.
#pragma once

#include <cstddef>
#include <string_view>

namespace cria {

// The bytes of the first piece of a text that is not empty; at least 1.
using FirstPiece = size_t (*)(std::string_view text);

// The matcher of a regular expression as tokenizer.json spells it; nullptr when it is not known.
FirstPiece find_split_pattern(std::string_view regex);

size_t first_gpt2_piece(std::string_view text);       // what ByteLevel splits by
size_t first_digit_or_rest(std::string_view text);    // every digit alone
size_t first_digits_or_rest(std::string_view text);   // digits apart from the rest
size_t first_metaspace_piece(std::string_view text);  // a piece ends before the next U+2581

}  // namespace cria
