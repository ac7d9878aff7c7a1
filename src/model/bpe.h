// Byte-pair encoding: a word's symbols, merged pair by pair in the order the pairs were learnt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cria {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using TextMap = std::unordered_map<std::string, int, TextHash, std::equal_to<>>;

struct BpeOptions {
  bool byte_level = false;     // symbols are bytes, else characters
  bool byte_fallback = false;  // a character without a token becomes the tokens <0x00> of its bytes
  bool fuse_unknown = false;   // unknown characters in a row are one token
  bool whole_words = false;    // a word that is a token is not built from merges
  std::optional<int> unknown = {};
};

class Bpe {
 public:
  // The tokens by their text (bytes where byte_level). Merges, in order, are pairs of tokens; their
  // joined text must be a token too, or else an Error says which is not.
  Bpe(TextMap tokens, const std::vector<std::pair<std::string, std::string>>& merges,
      BpeOptions options);

  void encode(std::string_view word, std::vector<int>& out) const;

 private:
  struct Merge {
    int rank;
    int token;
  };

  std::vector<int> symbols_of(std::string_view word) const;
  void append_unknown(std::string_view character, bool& after_unknown, std::vector<int>& out) const;
  void merge(std::vector<int>& symbols) const;
  const Merge* find_merge(int left, int right) const;

  TextMap tokens_;
  std::unordered_map<uint64_t, Merge> merges_;
  std::vector<int> byte_tokens_;  // 256; -1 where there is none
  BpeOptions options_;
};

}  // namespace cria
