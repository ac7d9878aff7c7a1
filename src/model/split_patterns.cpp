// The patterns are alternatives tried in order. Three of them need care:
//   \s+(?!\S)    white space at the end of the text, else all but the last character of it
//   \s*[\r\n]+   white space up to its last line break
//   X?\p{L}+     one character of X before letters, if letters follow
#include "model/split_patterns.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "model/unicode.h"

namespace cria {
namespace {

// A character of the text with its class; at the end a character of 0 bytes and class other.
struct Char {
  char32_t code = kInvalidChar;
  size_t bytes = 0;
  CharClass kind = CharClass::other;

  bool is_end() const { return bytes == 0; }
  bool is_line_break() const { return code == '\r' || code == '\n'; }
  bool is_symbol() const { return !is_end() && kind == CharClass::other; }
};

constexpr std::array<CharClass, 128> make_ascii_classes() {
  std::array<CharClass, 128> out = {};
  for (int c = 0; c < 128; ++c) {
    const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    out[c] = letter                 ? CharClass::letter
             : c >= '0' && c <= '9' ? CharClass::number
             : space                ? CharClass::space
                                    : CharClass::other;
  }
  return out;
}

Char char_at(std::string_view text, size_t at) {
  static constexpr std::array<CharClass, 128> kAscii = make_ascii_classes();
  if (at >= text.size()) return {};
  const auto byte = static_cast<uint8_t>(text[at]);
  if (byte < 0x80) return {byte, 1, kAscii[byte]};
  const Utf8Char c = first_char(text.substr(at));
  return {c.code, static_cast<size_t>(c.bytes), class_of(c.code)};
}

// The end of a run of characters that `keep` holds for, from `at` on, of at most `limit`.
template <class Keep>
size_t run_end(std::string_view text, size_t at, Keep keep, size_t limit = SIZE_MAX) {
  for (size_t n = 0; n < limit; ++n) {
    const Char c = char_at(text, at);
    if (c.is_end() || !keep(c)) break;
    at += c.bytes;
  }
  return at;
}

constexpr auto of_class(CharClass kind) {
  return [kind](const Char& c) { return c.kind == kind; };
}
constexpr auto is_symbol = [](const Char& c) { return c.is_symbol(); };
constexpr auto is_line_break = [](const Char& c) { return c.is_line_break(); };

// 's|'t|'re|'ve|'m|'ll|'d: the bytes of it at the start, or 0. Without case, U+017F is an s too.
size_t contraction(std::string_view text, bool any_case) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  const std::string_view rest = text.substr(1);
  const auto lower = [&](size_t i) {
    const char c = i < rest.size() ? rest[i] : '\0';
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  for (const char c : {'s', 't', 'm', 'd'}) {
    if (lower(0) == c) return 2;
  }
  for (const char* pair : {"re", "ve", "ll"}) {
    if (lower(0) == pair[0] && lower(1) == pair[1]) return 3;
  }
  constexpr std::string_view kLongS = "\u017f";
  return any_case && rest.starts_with(kLongS) ? 1 + kLongS.size() : 0;
}

// \s+(?!\S)|\s+ where the text starts with white space.
size_t white_space(std::string_view text) {
  size_t end = 0, last = 0;
  for (Char c = char_at(text, 0); c.kind == CharClass::space; c = char_at(text, end)) {
    last = end;
    end += c.bytes;
  }
  return end == text.size() || last == 0 ? end : last;
}

// [^\r\n\p{L}\p{N}]?\p{L}+ : its bytes at the start, or 0.
size_t prefixed_letters(std::string_view text) {
  const Char first = char_at(text, 0);
  const bool letter = first.kind == CharClass::letter;
  if (!letter && (first.kind == CharClass::number || first.is_line_break())) return 0;
  const size_t start = letter ? 0 : first.bytes;
  const size_t end = run_end(text, start, of_class(CharClass::letter));
  return end > start ? end : 0;
}

// \s*[\r\n]+ : its bytes at the start, or 0.
size_t lines_end(std::string_view text) {
  size_t at = 0, end = 0;
  for (Char c = char_at(text, 0); c.kind == CharClass::space; c = char_at(text, at)) {
    at += c.bytes;
    if (c.is_line_break()) end = at;
  }
  return end;
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}|
//  ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
template <size_t digits>
size_t first_llama3_piece(std::string_view text) {
  if (const size_t n = contraction(text, true)) return n;
  if (const size_t n = prefixed_letters(text)) return n;
  if (const size_t n = run_end(text, 0, of_class(CharClass::number), digits)) return n;
  const size_t start = text[0] == ' ' ? 1 : 0;
  if (const size_t end = run_end(text, start, is_symbol); end > start)
    return run_end(text, end, is_line_break);
  if (const size_t n = lines_end(text)) return n;
  return white_space(text);
}

constexpr std::pair<std::string_view, FirstPiece> kPatterns[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     first_gpt2_piece},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     first_llama3_piece<3>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     first_llama3_piece<1>},
};

}  // namespace

FirstPiece find_split_pattern(std::string_view regex) {
  for (const auto& [text, matcher] : kPatterns) {
    if (text == regex) return matcher;
  }
  return nullptr;
}

size_t first_gpt2_piece(std::string_view text) {
  if (const size_t n = contraction(text, false)) return n;
  const size_t start = text[0] == ' ' ? 1 : 0;
  for (const CharClass kind : {CharClass::letter, CharClass::number}) {
    if (const size_t end = run_end(text, start, of_class(kind)); end > start) return end;
  }
  if (const size_t end = run_end(text, start, is_symbol); end > start) return end;
  return white_space(text);
}

size_t first_digit_or_rest(std::string_view text) {
  if (const size_t n = run_end(text, 0, of_class(CharClass::number), 1)) return n;
  return run_end(text, 0, [](const Char& c) { return c.kind != CharClass::number; });
}

size_t first_digits_or_rest(std::string_view text) {
  if (const size_t n = run_end(text, 0, of_class(CharClass::number))) return n;
  return run_end(text, 0, [](const Char& c) { return c.kind != CharClass::number; });
}

size_t first_metaspace_piece(std::string_view text) {
  return std::min(text.find("\u2581", 1), text.size());
}

}  // namespace cria
