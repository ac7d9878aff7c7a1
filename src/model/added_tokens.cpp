#include "model/added_tokens.h"

#include <algorithm>
#include <cstdint>

#include "model/unicode.h"

namespace cria {
namespace {

size_t white_space_after(std::string_view text, size_t at) {
  while (at < text.size()) {
    const Utf8Char c = first_char(text.substr(at));
    if (class_of(c.code) != CharClass::space) break;
    at += static_cast<size_t>(c.bytes);
  }
  return at;
}

size_t white_space_before(std::string_view text, size_t begin, size_t at) {
  size_t start = at;  // of the white space that reaches to `at`
  for (size_t i = begin; i < at;) {
    const Utf8Char c = first_char(text.substr(i));
    if (class_of(c.code) != CharClass::space)
      start = at;
    else if (start == at)
      start = i;
    i += static_cast<size_t>(c.bytes);
  }
  return start;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) {
  std::ranges::stable_sort(tokens, std::ranges::greater(),
                           [](const AddedToken& t) { return t.text.size(); });
  for (AddedToken& token : tokens) {
    if (!token.text.empty())
      by_first_byte_[static_cast<uint8_t>(token.text[0])].push_back(std::move(token));
  }
}

const AddedToken* AddedTokens::find_at(std::string_view text, size_t at) const {
  for (const AddedToken& token : by_first_byte_[static_cast<uint8_t>(text[at])]) {
    if (text.substr(at).starts_with(token.text)) return &token;
  }
  return nullptr;
}

std::vector<TextPart> AddedTokens::cut(std::string_view text) const {
  std::vector<TextPart> out;
  size_t done = 0;
  const auto add_text = [&](size_t end) {
    if (end > done) out.push_back({text.substr(done, end - done)});
  };
  for (size_t at = 0; at < text.size();) {
    const AddedToken* token = find_at(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    const size_t start = token->strip_left ? white_space_before(text, done, at) : at;
    const size_t after = at + token->text.size();
    const size_t end = token->strip_right ? white_space_after(text, after) : after;
    add_text(start);
    out.push_back({text.substr(start, end - start), token->id});
    done = at = end;
  }
  add_text(text.size());
  return out;
}

}  // namespace cria
