// Text to tokens and back: bytes, or what a Hugging Face tokenizer.json describes.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cria {

// How texts begin and end.
struct TextEnds {
  std::optional<int> bos;        // put before a text
  std::optional<int> named_bos;  // called the beginning, and perhaps not put there
  std::vector<int> ends;
};

// Whether tokens that stand for no text, such as the end of one, are shown or left out.
enum class Special { drop, keep };

// Objects are immutable: any number of threads may share one.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Any bytes are text, also those that are no UTF-8.
  std::vector<int> encode(std::string_view text) const { return encode_part(text, true); }

  // A part of a longer text. What a tokenizer puts before a text comes before the first part only.
  virtual std::vector<int> encode_part(std::string_view text, bool first) const = 0;

  // The bytes that the tokens stand for; unknown tokens stand for nothing. decode(encode(text)) is
  // the text, byte for byte, unless the tokenizer changes texts (docs/checkpoints.md, Tokenizers).
  virtual std::string decode(std::span<const int> tokens,
                             Special special = Special::drop) const = 0;

  // The bytes of one token in the middle of a text; they may be a part of a character.
  virtual std::string decode_token(int token, Special special = Special::drop) const = 0;

  virtual int vocab_size() const = 0;

  // Whether a token is a byte, so that a file of text is a file of tokens.
  virtual bool speaks_bytes() const { return false; }

  // What a model expects before a text, where it expects something.
  std::optional<int> bos() const { return ends_.bos; }

  // What it learns to put after a text, where it does: the first of ends() that is a token.
  std::optional<int> eos() const {
    for (const int token : ends_.ends) {
      if (token < vocab_size()) return token;
    }
    return std::nullopt;
  }

  // The tokens after which a text is over: a model may have several.
  const std::vector<int>& ends() const { return ends_.ends; }

  // What the model's files call the beginning of a text, also where they do not put it before one.
  std::optional<int> named_bos() const { return ends_.named_bos; }

  // The files that make this tokenizer, name to text, to be kept beside a model.
  const std::map<std::string, std::string>& files() const { return files_; }

 protected:
  TextEnds ends_;
  std::map<std::string, std::string> files_;
};

// A token is a byte; 256 of them.
std::unique_ptr<Tokenizer> make_byte_tokenizer();

// From a tokenizer.json or the folder it is in; an Error names what is not supported. The beginning
// and the end of a text come from it and the model's files beside it (tokenizer_ends.cpp).
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path);

}  // namespace cria
