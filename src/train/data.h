// Batches of training text, by number: the same number gives the same batch on any machine, so that
// a run can go on anywhere.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "model/tokenizer.h"
#include "train/token_source.h"

namespace cria {

enum class Split { train, validation };

class TrainingData {
 public:
  // Batches of `batch` sequences of `seq` tokens. The last share of the tokens is for validation:
  // at least one sequence. An Error, which begins with `name`, when the tokens do not suffice.
  TrainingData(const std::string& name, std::unique_ptr<TokenSource> tokens, int batch, int seq,
               uint64_t seed, double validation_share = 0.05);

  // inputs and targets are [batch, seq]; a target is the token after the input. Training batches
  // are drawn at random from (seed, number); validation batches are the same in every run, side by
  // side, and begin again after the last. Gives how many of the sequences count: all, but in the
  // last validation batch, which is filled up with sequences that were there before.
  int fill_batch(uint64_t number, Split split, std::span<int> inputs, std::span<int> targets) const;

  uint64_t tokens(Split split) const;

  // Validation batches until they begin again, the last perhaps not full.
  uint64_t validation_batches() const;

 private:
  uint64_t validation_sequences() const;
  uint64_t start_of(uint64_t number, int row, Split split) const;

  std::unique_ptr<TokenSource> source_;
  int batch_, seq_;
  uint64_t seed_;
  uint64_t training_ = 0;  // tokens before those for validation
};

// Text from files: bytes without a tokenizer, else tokens, which are kept in `cache`.
class TextData : public TrainingData {
 public:
  TextData(const std::vector<std::filesystem::path>& files, const Tokenizer* tokenizer, int batch,
           int seq, uint64_t seed, const TokenizeProgress& progress = {},
           const std::filesystem::path& cache = token_cache_folder());
};

// A text made up on the spot, with structure to learn (generated_text.h).
class GeneratedData : public TrainingData {
 public:
  GeneratedData(int vocab, int batch, int seq, uint64_t seed);
};

}  // namespace cria
