// Long rows of tokens that need not be in memory: bytes of files, and files of tokens. Files are
// read and not mapped, because one that is cut short meanwhile would end the process then.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/tokenizer.h"

namespace cria {

class TokenSource {
 public:
  virtual ~TokenSource() = default;

  virtual uint64_t size() const = 0;

  // Tokens begin, begin + 1, ... which must be there.
  virtual void read(uint64_t begin, std::span<int> out) const = 0;
};

// Every byte of the files, one file after the other, is a token. An Error names a file that is
// missing or empty.
std::unique_ptr<TokenSource> open_bytes(const std::vector<std::filesystem::path>& files);

// A byte of a text in memory is a token.
std::unique_ptr<TokenSource> keep_bytes(std::string text);

// Called while files are tokenized, with the share that is done.
using TokenizeProgress = std::function<void(double share)>;

// The tokens of the files, each followed by the tokenizer's end where it has one. They are made
// once and kept in `cache`, under a name that changes with the text and the tokenizer; neither text
// nor tokens are ever in memory as a whole.
std::unique_ptr<TokenSource> open_tokens(const std::vector<std::filesystem::path>& files,
                                         const Tokenizer& tokenizer,
                                         const std::filesystem::path& cache,
                                         const TokenizeProgress& progress = {});

// Where tokens are kept when nobody says otherwise: `tokens` beside the tuning cache.
std::filesystem::path token_cache_folder();

// Where a text can be cut into two parts with the same tokens (see Tokenizer::encode_part): after a
// line break between characters that are no white space, about `wish` bytes in. Without one in
// reach, at some character.
size_t cut_for_tokenizing(std::string_view text, size_t wish);

}  // namespace cria
