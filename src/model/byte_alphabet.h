// The alphabet of byte-level BPE: every byte as one printable character, so that vocabularies are
// readable text. GPT-2 introduced it: printable Latin-1 stands for itself, the other bytes follow
// from U+0100 on.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/unicode.h"

namespace cria {

constexpr bool is_printable_latin1(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

// The character of a byte, as UTF-8.
inline std::string byte_symbol(uint8_t byte) {
  if (is_printable_latin1(byte)) return to_utf8(byte);
  char32_t next = 0x100;
  for (int b = 0; b < byte; ++b) next += is_printable_latin1(b) ? 0 : 1;
  return to_utf8(next);
}

// The bytes that a text of this alphabet stands for; nothing when another character is in it.
inline std::optional<std::string> bytes_of_symbols(std::string_view text) {
  static const std::array<int, 0x180> byte_of = [] {
    std::array<int, 0x180> out;
    out.fill(-1);
    for (int byte = 0; byte < 256; ++byte)
      out[first_char(byte_symbol(static_cast<uint8_t>(byte))).code] = byte;
    return out;
  }();
  std::string out;
  while (!text.empty()) {
    const Utf8Char c = first_char(text);
    if (c.code >= byte_of.size() || byte_of[c.code] < 0) return std::nullopt;
    out.push_back(static_cast<char>(byte_of[c.code]));
    text.remove_prefix(static_cast<size_t>(c.bytes));
  }
  return out;
}

}  // namespace cria
