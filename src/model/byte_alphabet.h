// The alphabet of byte-level BPE: every byte as one printable character, so that vocabularies are
// readable text. GPT-2 introduced it: printable Latin-1 stands for itself, the other bytes follow
// from U+0100 on.
#pragma once

#include <cstdint>
#include <string>

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

}  // namespace cria
