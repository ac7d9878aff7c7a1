// The tokenizer that a tokenizer.json describes, as the steps it is made of.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "model/added_tokens.h"
#include "model/bpe.h"
#include "model/split_patterns.h"
#include "model/tokenizer.h"
#include "model/unicode.h"

namespace cria {

// Normalizers change the text between added tokens.
struct PrependText {
  std::string text;  // before a text that is not empty
};
struct ReplaceText {
  std::string from, to;
};
using NormalizeStep = std::variant<PrependText, ReplaceText, NormalForm>;

// Pre-tokenizers cut it into words. In this order:
struct PreTokenizeStep {
  enum class Prefix { never, first, always };
  std::string space = {};            // what a space becomes, if not empty
  std::string prefix = {};           // put before a piece that does not start with it...
  Prefix when = Prefix::never;       // ...always, or before the piece at the start of the text
  FirstPiece first_piece = nullptr;  // how the piece is cut; not at all without
};

// Decoders turn a list of tokens' texts back.
struct BytesOfFallback {};  // <0x0A> becomes the byte
struct FuseTexts {};        // the list becomes one text
struct StripText {
  std::string text;
  int start = 0, stop = 0;  // at most so many at either end
};
struct SpacesOfMetaspace {
  std::string from;
  bool drop_first = true;  // those in the first token go
};
using DecodeStep =
    std::variant<ReplaceText, BytesOfFallback, FuseTexts, StripText, SpacesOfMetaspace>;

struct TokenizerParts {
  std::vector<std::string> tokens;                // id -> text (bytes where the BPE is byte-level)
  std::set<int> special;                          // tokens that stand for no text
  std::map<std::string, int, std::less<>> added;  // by the text they were added with
  AddedTokens raw_added;                          // found in the raw text
  AddedTokens normalized_added;                   // found after normalizing
  std::vector<NormalizeStep> normalizers;
  std::vector<PreTokenizeStep> pre_tokenizers;
  std::vector<DecodeStep> decoders;  // empty: texts are joined
  std::unique_ptr<const Bpe> bpe;
  TextEnds ends;
  std::map<std::string, std::string> files;
};

// Text that goes on from a part before it has nothing put before it.
std::string normalize(const std::vector<NormalizeStep>& steps, std::string_view text,
                      bool goes_on = false);

// The end of a text as the files of `folder` name it, besides what is in parts.ends already.
TextEnds read_text_ends(const std::filesystem::path& folder, const TokenizerParts& parts);

std::unique_ptr<Tokenizer> make_tokenizer(TokenizerParts parts);

}  // namespace cria
