#include "train/data.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/rng.h"
#include "train/generated_text.h"

namespace cria {
namespace {

constexpr uint64_t kDataSeed = 0x64617461;  // apart from other uses of a run's seed
constexpr size_t kGeneratedBytes = 1 << 20;

std::unique_ptr<TokenSource> open_text(const std::vector<std::filesystem::path>& files,
                                       const Tokenizer* tokenizer, const TokenizeProgress& progress,
                                       const std::filesystem::path& cache) {
  if (files.empty()) fail("no file of text was given");
  return tokenizer == nullptr ? open_bytes(files) : open_tokens(files, *tokenizer, cache, progress);
}

std::string name_of(const std::vector<std::filesystem::path>& files) {
  return files.size() == 1 ? files[0].string() : fmt::format("{} files", files.size());
}

}  // namespace

TrainingData::TrainingData(const std::string& name, std::unique_ptr<TokenSource> tokens, int batch,
                           int seq, uint64_t seed, double validation_share)
    : source_(std::move(tokens)), batch_(batch), seq_(seq), seed_(seed ^ kDataSeed) {
  require(batch > 0 && seq > 0 && validation_share >= 0 && validation_share < 1,
          "TrainingData: batch, seq > 0 and a share below 1 are needed");
  const uint64_t sequence = static_cast<uint64_t>(seq) + 1;  // with the target of its last token
  const uint64_t all = source_->size();
  if (all < 2 * sequence) {
    fail_f(
        "{} has {} tokens, but a sequence of {} for training and one for validation need {}; "
        "give more text or shorter sequences",
        name, all, seq, 2 * sequence);
  }
  const auto share =
      static_cast<uint64_t>(std::llround(static_cast<double>(all) * validation_share));
  training_ = all - std::clamp(share, sequence, all - sequence);
}

uint64_t TrainingData::tokens(Split split) const {
  return split == Split::train ? training_ : source_->size() - training_;
}

uint64_t TrainingData::validation_sequences() const {
  return (tokens(Split::validation) - 1) / static_cast<uint64_t>(seq_);
}

uint64_t TrainingData::validation_batches() const {
  const auto batch = static_cast<uint64_t>(batch_);
  return (validation_sequences() + batch - 1) / batch;
}

uint64_t TrainingData::start_of(uint64_t number, int row, Split split) const {
  const auto index = static_cast<uint64_t>(row);
  const auto seq = static_cast<uint64_t>(seq_);
  if (split == Split::train) {
    Rng rng(seed_, number);
    rng.seek(index);
    return rng.bits() % (training_ - seq);
  }
  const uint64_t place = number % validation_batches() * static_cast<uint64_t>(batch_) + index;
  return training_ + place % validation_sequences() * seq;
}

int TrainingData::fill_batch(uint64_t number, Split split, std::span<int> inputs,
                             std::span<int> targets) const {
  const auto seq = static_cast<size_t>(seq_);
  require(inputs.size() == static_cast<size_t>(batch_) * seq && targets.size() == inputs.size(),
          "fill_batch: inputs and targets must be [batch, seq]");
  for (int row = 0; row < batch_; ++row) {
    const uint64_t start = start_of(number, row, split);
    const size_t at = static_cast<size_t>(row) * seq;
    source_->read(start, inputs.subspan(at, seq));
    source_->read(start + 1, targets.subspan(at, seq));
  }
  if (split == Split::train) return batch_;
  const uint64_t before = number % validation_batches() * static_cast<uint64_t>(batch_);
  return static_cast<int>(std::min(validation_sequences() - before, static_cast<uint64_t>(batch_)));
}

TextData::TextData(const std::vector<std::filesystem::path>& files, const Tokenizer* tokenizer,
                   int batch, int seq, uint64_t seed, const TokenizeProgress& progress,
                   const std::filesystem::path& cache)
    : TrainingData(name_of(files), open_text(files, tokenizer, progress, cache), batch, seq, seed) {
}

GeneratedData::GeneratedData(int vocab, int batch, int seq, uint64_t seed)
    : TrainingData(
          "the generated text",
          keep_bytes(generate_text(vocab, std::max(kGeneratedBytes, 4 * size_t(seq)), seed)), batch,
          seq, seed) {}

}  // namespace cria
