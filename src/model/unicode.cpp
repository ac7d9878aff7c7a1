#include "model/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

namespace cria {
namespace {

using Code = utf8proc_int32_t;

int combining_class(Code c) { return utf8proc_get_property(c)->combining_class; }

// Marks of one base character come in the order of their classes. Sorted here because utf8proc
// takes time quadratic in their number.
void sort_marks(std::vector<Code>& codes) {
  const auto is_mark = [](Code c) { return combining_class(c) != 0; };
  for (auto at = codes.begin(); at != codes.end();) {
    const auto begin = std::find_if(at, codes.end(), is_mark);
    at = std::find_if_not(begin, codes.end(), is_mark);
    std::ranges::stable_sort(begin, at, {}, combining_class);
  }
}

utf8proc_option_t options_of(NormalForm form) {
  const bool composes = form == NormalForm::nfc || form == NormalForm::nfkc;
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  return static_cast<utf8proc_option_t>(UTF8PROC_STABLE |
                                        (composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                                        (compatible ? UTF8PROC_COMPAT : 0));
}

void append_decomposed(char32_t c, utf8proc_option_t options, std::vector<Code>& out) {
  constexpr size_t kLongest = 32;  // U+FDFA has 18
  std::array<Code, kLongest> parts;
  int boundary_class = 0;  // not asked for
  const auto count = utf8proc_decompose_char(static_cast<Code>(c), parts.data(), parts.size(),
                                             options, &boundary_class);
  if (count > 0 && count <= std::ssize(parts))
    out.insert(out.end(), parts.begin(), parts.begin() + count);
  else
    out.push_back(static_cast<Code>(c));
}

// Valid characters that were decomposed: to their final form, and out.
void flush(std::vector<Code>& codes, utf8proc_option_t options, std::string& out) {
  sort_marks(codes);
  if (options & UTF8PROC_COMPOSE) {
    const auto size = static_cast<utf8proc_ssize_t>(codes.size());
    codes.resize(static_cast<size_t>(utf8proc_normalize_utf32(codes.data(), size, options)));
  }
  for (const Code c : codes) out += to_utf8(static_cast<char32_t>(c));
  codes.clear();
}

bool is_ascii(char c) { return static_cast<uint8_t>(c) < 0x80; }

}  // namespace

CharClass class_of(char32_t c) {
  switch (utf8proc_category(static_cast<Code>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharClass::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharClass::number;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return CharClass::space;
    default:  // control characters that are white space
      return (c >= '\t' && c <= '\r') || c == 0x85 ? CharClass::space : CharClass::other;
  }
}

Utf8Char first_char(std::string_view text) {
  Code code = 0;
  const auto bytes =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(std::min<size_t>(text.size(), 4)), &code);
  if (bytes <= 0) return {kInvalidChar, 1};
  return {static_cast<char32_t>(code), static_cast<int>(bytes)};
}

std::string to_utf8(char32_t code) {
  std::array<utf8proc_uint8_t, 4> bytes;
  const auto count = utf8proc_encode_char(static_cast<Code>(code), bytes.data());
  return {bytes.begin(), bytes.begin() + count};
}

// ASCII is the same in every form and never joins what is before it, so that only texts from one
// ASCII character, which may take marks, to the next are looked at.
std::string normalized(std::string_view text, NormalForm form) {
  const utf8proc_option_t options = options_of(form);
  std::string out;
  out.reserve(text.size());
  std::vector<Code> codes;
  for (auto at = text.begin(); at != text.end();) {
    const auto other = std::find_if_not(at, text.end(), is_ascii);
    if (other == text.end()) return out.append(at, other);
    const auto end = std::find_if(other, text.end(), is_ascii);
    const auto begin = other == at ? other : other - 1;
    out.append(at, begin);
    for (std::string_view rest(begin, end); !rest.empty();) {
      const Utf8Char c = first_char(rest);
      if (c.code != kInvalidChar) {
        append_decomposed(c.code, options, codes);
      } else {
        flush(codes, options, out);
        out.push_back(rest[0]);
      }
      rest.remove_prefix(static_cast<size_t>(c.bytes));
    }
    flush(codes, options, out);
    at = end;
  }
  return out;
}

std::string unicode_version() { return utf8proc_unicode_version(); }

bool may_cut_between(char32_t before, char32_t after) {
  return utf8proc_grapheme_break(static_cast<Code>(before), static_cast<Code>(after));
}

}  // namespace cria
