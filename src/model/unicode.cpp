#include "model/unicode.h"

#include <algorithm>

#include "model/unicode_tables.h"

namespace cria {

CharClass class_of(char32_t c) {
  const auto after = std::ranges::upper_bound(kClassRanges, c, {}, &ClassRange::first);
  if (after == kClassRanges.begin()) return CharClass::other;
  const ClassRange& range = *(after - 1);
  return c <= range.last ? range.kind : CharClass::other;
}

Utf8Char first_char(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const int length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  const Utf8Char invalid = {kInvalidChar, 1};
  if (lead < 0xc2 || lead > 0xf4 || text.size() < static_cast<size_t>(length)) return invalid;
  char32_t code = lead & (0xff >> (length + 1));
  for (int i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return invalid;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kSmallest[length] || surrogate || code > 0x10ffff) return invalid;
  return {code, length};
}

std::string to_utf8(char32_t code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xe0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0)};
}

}  // namespace cria
