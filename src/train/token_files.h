// Tokens of a fixed width at the start of files.
#pragma once

#include "base/input_file.h"
#include "train/token_source.h"

namespace cria {

struct TokenFile {
  InputFile file;
  int width;       // bytes of a token: 1, 2 or 4
  uint64_t count;  // tokens
};

// The files' tokens, one file after the other.
std::unique_ptr<TokenSource> join_files(std::vector<TokenFile> files);

}  // namespace cria
