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

// Objects are immutable: any number of threads may share one.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Any bytes are text, also those that are no UTF-8.
  std::vector<int> encode(std::string_view text) const { return encode_part(text, true); }

  // A part of a longer text. What a tokenizer puts before a text comes before the first part only.
  virtual std::vector<int> encode_part(std::string_view text, bool first) const = 0;

  // The bytes the tokens stand for. Unknown tokens stand for nothing.
  virtual std::string decode(std::span<const int> tokens) const = 0;

  // The bytes of one token in the middle of a text; they may be a part of a character.
  virtual std::string decode_token(int token) const = 0;

  virtual int vocab_size() const = 0;

  // Whether a token is a byte, so that a file of text is a file of tokens.
  virtual bool speaks_bytes() const { return false; }

  // What a model expects before and at the end of a text, where it expects something.
  std::optional<int> bos() const { return bos_; }
  std::optional<int> eos() const { return eos_; }

  // The files that make this tokenizer, name to text, to be kept beside a model.
  const std::map<std::string, std::string>& files() const { return files_; }

 protected:
  std::optional<int> bos_, eos_;
  std::map<std::string, std::string> files_;
};

// A token is a byte; 256 of them.
std::unique_ptr<Tokenizer> make_byte_tokenizer();

// From a tokenizer.json or the folder it is in; an Error names what is not supported. The beginning
// and the end of a text come from the tokenizer's template and a tokenizer_config.json beside it.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path);

}  // namespace cria
