// Tokens that are found in the text itself, whole, before anything else is done to it: the special
// ones of a model and those a user has added.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace cria {

struct AddedToken {
  int id;
  std::string text;
  bool strip_left = false;   // takes the white space before it
  bool strip_right = false;  // takes the white space after it
};

// A piece of a text: a token, or text between tokens.
struct TextPart {
  std::string_view text;
  int token = -1;  // -1: text
};

class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  // The text in order, cut at the tokens; where several start, the longest counts.
  std::vector<TextPart> cut(std::string_view text) const;

 private:
  const AddedToken* find_at(std::string_view text, size_t at) const;

  std::array<std::vector<AddedToken>, 256> by_first_byte_;  // longest first
};

}  // namespace cria
