// As much Unicode as tokenizers need: UTF-8, the classes letter, number and white space, and the
// normal forms. What a character is comes from utf8proc, whose version of Unicode is the system's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cria {

enum class CharClass : uint8_t { other, letter, number, space };

// \p{L}, \p{N} and \s of regular expressions; other for everything else.
CharClass class_of(char32_t c);

// One character of a text. Bytes that are no UTF-8 are characters of one byte each, of class other.
struct Utf8Char {
  char32_t code;  // kInvalidChar for such a byte
  int bytes;
};
inline constexpr char32_t kInvalidChar = 0xffffffff;

// The first character of a text that is not empty. Overlong forms, surrogates and codes beyond
// U+10FFFF are no UTF-8.
Utf8Char first_char(std::string_view text);

std::string to_utf8(char32_t code);

// How the same text is spelled in one way: with characters composed (C) or taken apart (D), those
// that mean the same but look different kept apart or made one (K).
enum class NormalForm { nfc, nfd, nfkc, nfkd };

// Bytes that are no UTF-8 stay as they are.
std::string normalized(std::string_view text, NormalForm form);

// The version of Unicode, such as "15.0.0".
std::string unicode_version();

// Whether two texts, the first cut off before the second, are normalized as the whole would be:
// what users see as one character was not cut.
bool may_cut_between(char32_t before, char32_t after);

}  // namespace cria
