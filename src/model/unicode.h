// As much Unicode as tokenizers need: UTF-8, and the classes letter, number and white space.
#pragma once

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

}  // namespace cria
