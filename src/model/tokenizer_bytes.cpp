// A token per byte. The tokenizer.json it leaves beside a model says the same to other programs: a
// byte-level BPE without merges whose token of a byte is the byte.
#include "base/json.h"
#include "model/byte_alphabet.h"
#include "model/tokenizer.h"

namespace cria {
namespace {

std::string byte_tokenizer_json() {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte) vocab[byte_symbol(static_cast<uint8_t>(byte))] = byte;
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", false}};
  const Json json = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", Json::array()},
                     {"normalizer", nullptr},
                     {"pre_tokenizer", byte_level},
                     {"post_processor", nullptr},
                     {"decoder", byte_level},
                     {"model",
                      {{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", nullptr},
                       {"end_of_word_suffix", nullptr},
                       {"fuse_unk", false},
                       {"byte_fallback", false},
                       {"vocab", vocab},
                       {"merges", Json::array()}}}};
  return json.dump(2) + "\n";
}

class ByteTokenizer final : public Tokenizer {
 public:
  ByteTokenizer() { files_["tokenizer.json"] = byte_tokenizer_json(); }

  std::vector<int> encode_part(std::string_view text, bool) const override {
    std::vector<int> out;
    out.reserve(text.size());
    for (const char c : text) out.push_back(static_cast<uint8_t>(c));
    return out;
  }

  std::string decode(std::span<const int> tokens, Special) const override {
    std::string out;
    for (const int token : tokens) {
      if (token >= 0 && token < 256) out.push_back(static_cast<char>(token));
    }
    return out;
  }

  std::string decode_token(int token, Special special) const override {
    return decode({&token, 1}, special);
  }

  int vocab_size() const override { return 256; }

  bool speaks_bytes() const override { return true; }
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

}  // namespace cria
