// Decoding with a cache against the plan that trains, which sees all tokens at once.
#include "plans/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/rng.h"
#include "base/rounding.h"
#include "lab/diff.h"
#include "runtime/on_device.h"
#include "runtime/recorder.h"
#include "train/generate.h"
#include "train/trainer.h"

namespace cria::test {
namespace {

constexpr int kTokens = 300;  // more than one chunk of a prompt

struct DecoderCase {
  Backend backend;
  DType dtype = DType::f32;
  int heads = 4;     // on 2 key heads: one by one up to 2 on each, as a group from there on
  bool odd = false;  // every width, so that rows and heads have gaps behind them
};

std::vector<DecoderCase> all_cases() {
  std::vector<DecoderCase> out;
  for (const Backend backend : {Backend::cpu, Backend::cuda})
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const int heads : {4, 8})
        for (const bool odd : {false, true}) out.push_back({backend, dtype, heads, odd});
  return out;
}

std::string case_name(const ::testing::TestParamInfo<DecoderCase>& info) {
  const DecoderCase& c = info.param;
  return std::string(c.backend == Backend::cuda ? "cuda_" : "cpu_") + name_of(c.dtype) + "_" +
         std::to_string(c.heads) + "heads" + (c.odd ? "_odd" : "");
}

class DecoderTest : public ::testing::TestWithParam<DecoderCase> {
 protected:
  void SetUp() override {
    if (GetParam().backend == Backend::cuda && !has_cuda()) GTEST_SKIP() << "no CUDA device";
    config_ = find_preset("debug").model;
    if (GetParam().odd)
      config_.dim = 67, config_.head_dim = 10, config_.ffn = 171, config_.vocab = 259;
    config_.heads = GetParam().heads;
    config_.context = kTokens;
    map_.emplace(config_);
    weights_.resize(map_->size());
    init_weights(*map_, 3, weights_, 0.1f);
    Rng rng(1);
    for (int i = 0; i < kTokens; ++i)
      tokens_.push_back(static_cast<int32_t>(rng.below(config_.vocab)));
  }
  Device device() const { return {GetParam().backend, 0}; }
  DType dtype() const { return GetParam().dtype; }
  std::unique_ptr<Decoder> decoder(int capacity = 0) {
    return make_decoder(
        {.model = config_, .device = device(), .dtype = dtype(), .capacity = capacity}, *map_,
        [&](std::span<float> flat) { std::ranges::copy(weights_, flat.begin()); });
  }
  // The logits that the plan `baseline` gives for all tokens.
  std::vector<float> reference() {
    auto trainer = make_trainer({.model = config_,
                                 .plan = "baseline",
                                 .device = device(),
                                 .dtype = dtype(),
                                 .batch = 1,
                                 .seq = kTokens});
    trainer->write(Trainer::State::weights, weights_);
    std::vector<float> out;
    trainer->watch({tokens_, tokens_}, [&](const Made& made) {
      if (made.name != "logits") return;
      out = keep_tensor(trainer->stream(), made).values;
    });
    return out;
  }
  void expect_same(std::span<const float> got, std::span<const float> want, const char* what) {
    ASSERT_EQ(got.size(), want.size());
    double error = 0, length = 0;
    for (size_t i = 0; i < want.size(); ++i)
      error += std::pow(double(got[i]) - want[i], 2), length += double(want[i]) * want[i];
    const double roundings = 14.0 * config_.layers + 4;
    const double bound = dtype() == DType::f32 ? 2 * stages_bound(roundoff(dtype()), roundings)
                                               : 2 * roundings_bound(roundoff(dtype()), roundings);
    EXPECT_LE(std::sqrt(error / length), bound) << what;
  }

  ModelConfig config_;
  std::optional<WeightMap> map_;
  std::vector<float> weights_;
  std::vector<int32_t> tokens_;
};
INSTANTIATE_TEST_SUITE_P(Cases, DecoderTest, ::testing::ValuesIn(all_cases()), case_name);

TEST_P(DecoderTest, AllAtOnceAsThePlan) {
  expect_same(decoder()->feed_all(tokens_), reference(), "all");
}

TEST_P(DecoderTest, OneByOneAsThePlan) {
  const auto want = reference();
  auto d = decoder();
  std::vector<float> got;
  for (const int32_t token : tokens_) {
    const auto logits = d->feed({&token, 1});
    got.insert(got.end(), logits.begin(), logits.end());
  }
  expect_same(got, want, "one by one");
}

TEST_P(DecoderTest, InPiecesAndAfterARewind) {
  const auto all = std::span<const int32_t>(tokens_);
  auto d = decoder();
  std::vector<float> got;
  auto feed = [&](size_t from, size_t count) {
    const auto logits = d->feed_all(all.subspan(from, count));
    got.insert(got.end(), logits.begin(), logits.end());
  };
  feed(0, 7);
  d->feed(all.subspan(50, 100));  // to be forgotten
  d->rewind(7);
  feed(7, 200);
  feed(207, all.size() - 207);
  expect_same(got, reference(), "pieces");
}

// Where parts of the keys begin and end, at the first token and the last that there is room for. What
// later tokens have left in the cache must not be read.
TEST_P(DecoderTest, SingleTokensAtTheEdgesOfParts) {
  constexpr int kRoom = 700;
  Rng rng(2);
  std::vector<int32_t> tokens(kRoom);
  for (int32_t& token : tokens) token = static_cast<int32_t>(rng.below(config_.vocab));
  auto d = decoder(kRoom);
  const auto want = d->feed_all(tokens);
  const size_t vocab = config_.vocab;
  for (const int length :
       {700, 699, 577, 576, 385, 384, 321, 320, 257, 256, 193, 192, 129, 128, 65, 64, 63, 2, 1}) {
    d->rewind(length - 1);
    const auto got = d->feed({&tokens[length - 1], 1});
    expect_same(got, std::span(want).subspan((length - 1) * vocab, vocab),
                ("token " + std::to_string(length)).c_str());
  }
}

// On CUDA single tokens are replayed as a graph unless a recorder is to see their launches.
TEST_P(DecoderTest, RecordedLaunchesGiveTheSameBits) {
  auto plain = decoder(), replayed = decoder();
  Recorder recorder(Recorder::Mode::count);
  plain->stream().set_recorder(&recorder);
  for (int i = 0; i < 140; ++i) {
    recorder.clear();
    const auto want = plain->feed({&tokens_[i], 1}), got = replayed->feed({&tokens_[i], 1});
    ASSERT_TRUE(std::ranges::equal(got, want)) << "token " << i;
    ASSERT_GT(recorder.launches(), 8 * config_.layers) << "token " << i;
  }
}

TEST_P(DecoderTest, GoesOnAfterARewindAsBefore) {
  auto d = decoder();
  std::vector<std::vector<float>> want;
  const auto feed = [&](int i) {
    const auto logits = d->feed({&tokens_[i], 1});
    return std::vector(logits.begin(), logits.end());
  };
  for (int i = 0; i < 70; ++i) want.push_back(feed(i));
  for (const int back : {69, 60, 3, 0}) {
    d->rewind(back);
    d->feed(std::span<const int32_t>(tokens_).subspan(100, 40));  // to be forgotten
    d->rewind(back);
    for (int i = back; i < std::min(back + 5, 70); ++i) EXPECT_EQ(feed(i), want[i]) << i;
    d->rewind(back);
    for (int i = back; i < 70; ++i) ASSERT_EQ(feed(i), want[i]) << i;
  }
}

TEST_P(DecoderTest, TwoAtOnceDoNotMeet) {
  const auto run = [&](std::span<Decoder* const> decoders) {
    std::vector<std::vector<float>> out;
    for (int i = 0; i < 20; ++i)
      for (size_t which = 0; which < decoders.size(); ++which) {
        const auto logits = decoders[which]->feed({&tokens_[i + 50 * which], 1});
        out.emplace_back(logits.begin(), logits.end());
      }
    return out;
  };
  auto first = decoder(), second = decoder(), alone = decoder();
  Decoder* const both[] = {first.get(), second.get()};
  Decoder* const one[] = {alone.get()};
  const auto together = run(both), apart = run(one);
  for (size_t i = 0; i < apart.size(); ++i) EXPECT_EQ(together[2 * i], apart[i]) << i;
  EXPECT_NE(together[0], together[1]);
}

TEST_P(DecoderTest, SaysHowLongTheDeviceTook) {
  auto d = decoder();
  using Clock = std::chrono::steady_clock;
  for (const int count : {1, 1, 1, 30}) {
    const auto start = Clock::now();
    d->feed(std::span<const int32_t>(tokens_).first(count));
    const std::chrono::duration<double, std::micro> wall = Clock::now() - start;
    EXPECT_GT(d->device_us(), 0);
    EXPECT_LE(d->device_us(), 1.01 * wall.count());
  }
}

TEST_P(DecoderTest, SaysWhenTheCacheIsFull) {
  auto d = decoder(5);
  d->feed(std::span<const int32_t>(tokens_).first(5));
  expect_error([&] { d->feed(std::span<const int32_t>(tokens_).first(1)); }, "holds 5 tokens");
  expect_error([&] { d->rewind(6); }, "rewind");
  const int32_t outside = config_.vocab;
  expect_error([&] { decoder()->feed({&outside, 1}); }, "vocabulary");
}

TEST_P(DecoderTest, GeneratesTheSameTextFromTheSameSeed) {
  const auto prompt = std::span<const int32_t>(tokens_).first(5);
  auto text = [&](uint64_t seed, int capacity) {
    auto d = decoder(capacity);
    TokenSampler sampler({.temperature = 1, .seed = seed});
    return generate(*d, sampler, prompt, 20, {});
  };
  EXPECT_EQ(text(1, 0), text(1, 0));
  EXPECT_NE(text(1, 0), text(2, 0));
  EXPECT_EQ(std::ssize(text(1, 0)), 20);
  EXPECT_EQ(std::ssize(text(1, 10)), 6);  // 5 fit, and what follows the last
}

}  // namespace
}  // namespace cria::test
