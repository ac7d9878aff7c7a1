// What a short run must reach: a loss on text it has not seen, and a sample that looks like text.
// The losses were measured with these seeds; they may come out 0.1 higher.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "runtime/on_device.h"
#include "train/data.h"
#include "train/loop.h"

namespace cria::test {
namespace {

constexpr int kSteps = 150, kSeq = 64;

// The last samples of a run, each as long as what the model has seen, without the prompt's line
// break.
class Samples final : public RunObserver {
 public:
  std::string text;
  void sampled(int64_t step, const std::string& sample) override {
    if (step > kSteps * 2 / 3) text += sample.substr(1);
  }
};

class LearningTest : public OnDevice {
 protected:
  // A model of bytes that learns in seconds.
  RunOptions options(int dim, int batch, float rate) const {
    return {.trainer = {.model = {.dim = dim,
                                  .layers = 2,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .head_dim = dim / 4,
                                  .ffn = 3 * dim,
                                  .vocab = 256,
                                  .context = 512,
                                  .tied = false},
                        .device = device(),
                        .batch = batch,
                        .seq = kSeq},
            .schedule = {.peak = rate, .warmup = 10, .steps = kSteps},
            .seed = 1,
            .report_every = kSteps,
            .validate_every = kSteps,
            .sample_every = kSteps / 15,
            .sample_tokens = kSeq - 1};
  }
  // The loss on the part kept for validation; the last samples are in samples_.
  double learn(const RunOptions& options, const TrainingData& data) {
    const auto tokenizer = make_byte_tokenizer();
    const auto batches = [&](Split split) {
      return [&data, split](uint64_t n, auto x, auto y) { return data.fill_batch(n, split, x, y); };
    };
    const RunData run{batches(Split::train), batches(Split::validation), tokenizer.get()};
    const double loss = run_training(options, run, samples_).validation_loss;
    RecordProperty("validation_loss", std::to_string(loss));
    return loss;
  }
  void expect_text(int lines) const {
    const std::string& text = samples_.text;
    const auto plain = std::ranges::count_if(
        text, [](unsigned char c) { return std::isalpha(c) || c == ' ' || c == '\n'; });
    EXPECT_GT(double(plain), 0.8 * double(text.size())) << text;
    EXPECT_GE(std::ranges::count(text, '\n'), lines) << text;
    EXPECT_GE(std::ranges::count(text, ' '), std::ssize(text) / 20) << text;
  }

  Samples samples_;
};
INSTANTIATE_TEST_SUITE_P(Backends, LearningTest, every_backend(), backend_name);

TEST_P(LearningTest, GeneratedTextToTheStatedLoss) {
  const RunOptions o = options(64, 8, 5e-3f);
  const GeneratedData data(o.trainer.model.vocab, o.trainer.batch, o.trainer.seq, o.seed);
  EXPECT_LT(learn(o, data), 0.45 + 0.1);
  expect_text(1);
}

// Less than what the byte before alone can tell, 2.48 for Shakespeare's plays (1 MB).
TEST_P(LearningTest, RealTextToTheStatedLoss) {
  const char* file = std::getenv("CRIA_TEST_TEXT");
  if (!file || !*file)
    GTEST_SKIP() << "CRIA_TEST_TEXT is not set to a file with Shakespeare's plays";
  const RunOptions o = options(128, 16, 3e-3f);
  const TextData data({file}, nullptr, o.trainer.batch, o.trainer.seq, o.seed);
  EXPECT_LT(learn(o, data), 2.28 + 0.1);
  expect_text(4);
}

}  // namespace
}  // namespace cria::test
