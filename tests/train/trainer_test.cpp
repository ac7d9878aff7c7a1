// Training as a whole: determinism, accumulation, plans against each other, and how memory grows.
#include "train/trainer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "base/rng.h"
#include "lab/diff.h"
#include "runtime/kernel.h"
#include "runtime/on_device.h"

namespace cria::test {
namespace {

struct RandomBatch {
  std::vector<int32_t> tokens, targets;
  RandomBatch(const TrainerOptions& o, uint64_t seed) {
    Rng rng(seed);
    for (int i = 0; i < o.batch * o.seq; ++i) {
      tokens.push_back(static_cast<int32_t>(rng.below(o.model.vocab)));
      targets.push_back(static_cast<int32_t>(rng.below(o.model.vocab)));
    }
  }
  HostBatch view() const { return {tokens, targets}; }
};

TrainerOptions debug_options(Device device, const std::string& plan = "flash") {
  const Preset& preset = find_preset("debug");
  return {.model = preset.model,
          .plan = plan,
          .device = device,
          .batch = preset.batch,
          .seq = preset.seq};
}

// Every width odd, so that rows, heads and joined parts have gaps behind them.
TrainerOptions odd_options(Device device, const std::string& plan = "flash") {
  return {.model = {.dim = 27,
                    .layers = 2,
                    .heads = 6,
                    .kv_heads = 2,
                    .head_dim = 10,
                    .ffn = 37,
                    .vocab = 53,
                    .context = 32,
                    .tied = false},
          .plan = plan,
          .device = device,
          .batch = 2,
          .seq = 19};
}

// Those that are built.
std::vector<DType> trained_types(Device device) {
  std::vector<DType> out;
  for (const DType dtype : {DType::f32, DType::bf16})
    if (kernel_registry().find("adamw", dtype, target_of(device))) out.push_back(dtype);
  return out;
}

std::vector<double> losses(const TrainerOptions& options, int steps) {
  auto trainer = make_trainer(options);
  trainer->initialise(1);
  std::vector<double> out;
  for (int i = 0; i < steps; ++i) {
    std::vector<RandomBatch> batches;
    std::vector<HostBatch> views;
    for (int j = 0; j < options.accumulate; ++j)
      batches.emplace_back(options, i * options.accumulate + j);
    for (const RandomBatch& b : batches) views.push_back(b.view());
    trainer->step(views, 1e-3f);
    out.push_back(trainer->loss());
  }
  return out;
}

class TrainerTest : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Backends, TrainerTest, every_backend(), backend_name);

TEST_P(TrainerTest, BeginsAtTheLogarithmOfTheVocabulary) {
  const TrainerOptions o = debug_options(device());
  EXPECT_NEAR(losses(o, 1)[0], std::log(o.model.vocab), 0.1);
}

TEST_P(TrainerTest, TheSameSeedGivesTheSameBits) {
  for (const DType dtype : trained_types(device()))
    for (const std::string& plan : plan_names())
      for (const int accumulate : {1, 3}) {
        TrainerOptions o = debug_options(device(), plan);
        o.dtype = dtype, o.accumulate = accumulate;
        EXPECT_EQ(losses(o, 4), losses(o, 4)) << plan << " in " << name_of(dtype);
      }
}

TEST_P(TrainerTest, AGraphGivesTheSameBits) {
  for (const DType dtype : trained_types(device()))
    for (const int accumulate : {1, 2}) {
      TrainerOptions o = debug_options(device());
      o.dtype = dtype, o.accumulate = accumulate;
      const auto with = losses(o, 5);
      o.graph = false;
      EXPECT_EQ(with, losses(o, 5)) << name_of(dtype);
    }
}

TEST_P(TrainerTest, RecomputingGivesTheSameBits) {
  for (const DType dtype : trained_types(device())) {
    TrainerOptions o = debug_options(device());
    o.dtype = dtype;
    const auto kept = losses(o, 3);
    o.recompute = true;
    EXPECT_EQ(kept, losses(o, 3)) << name_of(dtype);
  }
}

// Two batches of 1 are a batch of 2.
TEST_P(TrainerTest, AccumulationIsALargerBatch) {
  TrainerOptions whole = debug_options(device()), parts = whole;
  parts.batch = 1, parts.accumulate = 2;
  const RandomBatch batch(whole, 5);
  auto a = make_trainer(whole), b = make_trainer(parts);
  a->initialise(1), b->initialise(1);
  for (int step = 0; step < 3; ++step) {
    const HostBatch both = batch.view();
    const size_t half = both.tokens.size() / 2;
    const HostBatch halves[] = {{both.tokens.first(half), both.targets.first(half)},
                                {both.tokens.subspan(half), both.targets.subspan(half)}};
    a->step({&both, 1}, 1e-3f);
    b->step(halves, 1e-3f);
    EXPECT_NEAR(a->loss(), b->loss(), 1e-5) << step;
    EXPECT_NEAR(a->gradient_norm(), b->gradient_norm(), 1e-4 * a->gradient_norm()) << step;
  }
}

TEST_P(TrainerTest, AnEvaluationLeavesTheLossOfTheStep) {
  for (const int accumulate : {1, 2}) {
    TrainerOptions o = debug_options(device());
    o.accumulate = accumulate;
    const auto trainer = make_trainer(o);
    trainer->initialise(1);
    const RandomBatch batch(o, 1), other(o, 2);
    trainer->step(std::vector<HostBatch>(accumulate, batch.view()), 1e-3f);
    const double loss = trainer->loss();
    EXPECT_NE(trainer->evaluate(other.view()), loss);
    EXPECT_EQ(trainer->loss(), loss);
  }
}

// A batch's first sequence, whatever follows it.
TEST_P(TrainerTest, AnEvaluationMayCountTheFirstSequencesOnly) {
  TrainerOptions two = debug_options(device()), one = two;
  one.batch = 1;
  const RandomBatch batch(two, 3);
  const HostBatch both = batch.view();
  const size_t half = both.tokens.size() / 2;
  auto a = make_trainer(two), b = make_trainer(one);
  a->initialise(1), b->initialise(1);
  const double first = b->evaluate({both.tokens.first(half), both.targets.first(half)});
  const double second = b->evaluate({both.tokens.subspan(half), both.targets.subspan(half)});
  EXPECT_NEAR(a->evaluate(both, 1), first, 1e-5);
  EXPECT_NEAR(a->evaluate(both), (first + second) / 2, 1e-5);
  EXPECT_GT(std::abs(first - second), 1e-3);  // or it would show nothing
  expect_error([&] { a->evaluate(both, 3); }, "sequences");
}

TEST_P(TrainerTest, RefusesWhatAdamWCannotWorkWith) {
  for (const auto& [member, value] : {std::pair{&AdamWOptions::beta1, 1.f},
                                      {&AdamWOptions::beta2, NAN},
                                      {&AdamWOptions::eps, 0.f},
                                      {&AdamWOptions::weight_decay, NAN},
                                      {&AdamWOptions::max_norm, -1.f}}) {
    TrainerOptions o = debug_options(device());
    o.adamw.*member = value;
    expect_error([&] { make_trainer(o); }, "AdamW");
  }
}

TEST_P(TrainerTest, LearnsABatchByHeart) {
  TrainerOptions o = debug_options(device());
  o.adamw.weight_decay = 0;
  auto trainer = make_trainer(o);
  trainer->initialise(1);
  const RandomBatch batch(o, 3);
  const HostBatch view = batch.view();
  for (int i = 0; i < 150; ++i) trainer->step({&view, 1}, 3e-3f);
  EXPECT_LT(trainer->loss(), 0.5);
}

std::vector<uint32_t> bits_of(Trainer& trainer, Trainer::State which) {
  std::vector<float> values(trainer.map().size());
  trainer.read(which, values);
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), bits.size() * sizeof(uint32_t));
  return bits;
}

TEST_P(TrainerTest, WeightsKeepEveryBit) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    TrainerOptions o = debug_options(device());
    o.dtype = dtype;
    auto trainer = make_trainer(o);
    std::vector<float> values(trainer->map().size());
    Rng rng(4);
    for (size_t i = 0; i < values.size(); ++i) {
      uint32_t bits = static_cast<uint32_t>(rng.bits());
      if (i % 3 == 0) bits = (bits & 0xffff0000u) | 0x8000u;  // half way between two bf16
      values[i] = std::bit_cast<float>(bits);
      if (std::isnan(values[i])) values[i] = 0x1.fffffep127f;
    }
    trainer->write(Trainer::State::weights, values);
    const auto bits = bits_of(*trainer, Trainer::State::weights);
    EXPECT_EQ(std::memcmp(bits.data(), values.data(), bits.size() * sizeof(float)), 0)
        << name_of(dtype);
    EXPECT_EQ(trainer->memory().weights, 4 * trainer->map().size()) << name_of(dtype);
  }
}

TEST_P(TrainerTest, FirstWeightsAreThoseOfTheMapInEveryType) {
  for (const DType dtype : trained_types(device())) {
    TrainerOptions o = odd_options(device());
    o.dtype = dtype, o.init_std = 0.3f;
    o.model.vocab = 60'001;  // several pieces on their way to a GPU
    const auto trainer = make_trainer(o);
    const RandomBatch batch(o, 6);
    const HostBatch view = batch.view();
    std::vector<float> want(trainer->map().size());
    const std::vector<uint32_t> zeros(want.size());
    init_weights(trainer->map(), 5, want, o.init_std);
    using enum Trainer::State;
    for (int time = 0; time < 2; ++time) {  // once more after a step
      trainer->initialise(5);
      EXPECT_EQ(
          std::memcmp(bits_of(*trainer, weights).data(), want.data(), want.size() * sizeof(float)),
          0)
          << name_of(dtype);
      EXPECT_TRUE(bits_of(*trainer, m) == zeros && bits_of(*trainer, v) == zeros);
      EXPECT_EQ(trainer->steps(), 0);
      trainer->step({&view, 1}, 1e-3f);
      EXPECT_FALSE(bits_of(*trainer, m) == zeros);
    }
  }
}

TEST_P(TrainerTest, PartsOfItsStateAreReadAndWritten) {
  using enum Trainer::State;
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const auto which : {weights, m, v}) {
      TrainerOptions o = odd_options(device());
      o.dtype = dtype;
      const auto trainer = make_trainer(o);
      std::vector<float> values(trainer->map().size()), got(values.size());
      Rng(4).fill_normal(values, 1.f);
      trainer->write(which, values);
      trainer->write(which, std::vector<float>{5, 6, 7}, 1001);
      values[1001] = 5, values[1002] = 6, values[1003] = 7;
      trainer->read(which, std::span(got).first(999));
      trainer->read(which, std::span(got).subspan(999), 999);
      EXPECT_EQ(got, values) << name_of(dtype);
    }
}

// What is read and written again goes on as if nothing had happened.
TEST_P(TrainerTest, ItsStateIsAllThereIs) {
  for (const DType dtype : trained_types(device())) {
    TrainerOptions o = debug_options(device());
    o.dtype = dtype;
    auto a = make_trainer(o), b = make_trainer(o);
    a->initialise(1);
    const RandomBatch batch(o, 6);
    const HostBatch view = batch.view();
    for (int i = 0; i < 3; ++i) a->step({&view, 1}, 1e-3f);
    using enum Trainer::State;
    std::vector<float> values(a->map().size());
    for (const auto which : {weights, m, v}) a->read(which, values), b->write(which, values);
    b->set_steps(a->steps());
    for (int i = 0; i < 2; ++i) a->step({&view, 1}, 1e-3f), b->step({&view, 1}, 1e-3f);
    EXPECT_EQ(a->loss(), b->loss()) << name_of(dtype);
    for (const auto which : {weights, m, v})
      EXPECT_TRUE(bits_of(*a, which) == bits_of(*b, which)) << name_of(dtype);
  }
}

// What products run over and kernels leave alone.
TEST_P(TrainerTest, GapsAreZerosAndStaySo) {
  using enum Trainer::State;
  for (const std::string& plan : plan_names())
    for (const DType dtype : trained_types(device())) {
      TrainerOptions o = odd_options(device(), plan);
      o.dtype = dtype, o.accumulate = 2;
      auto trainer = make_trainer(o);
      trainer->initialise(1);
      std::vector<RandomBatch> batches = {RandomBatch(o, 1), RandomBatch(o, 2)};
      const std::vector<HostBatch> views = {batches[0].view(), batches[1].view()};
      for (int i = 0; i < 3; ++i) trainer->step(views, 1e-2f);
      for (const auto which : {weights, m, v}) {
        std::vector<float> values(trainer->map().size());
        trainer->read(which, values);
        int64_t moved = 0;
        for (const WeightEntry& e : trainer->map().entries())
          e.runs.each([&](int64_t place, int64_t, int64_t count) {
            for (int64_t i = e.offset + place; i < e.offset + place + count; ++i)
              moved += values[i] != 0, values[i] = 0;
          });
        EXPECT_GT(moved, trainer->map().parameters() * 9 / 10) << plan;
        for (const float x : values) ASSERT_EQ(x, 0) << plan << " " << name_of(dtype);
      }
      int tensors = 0;
      trainer->watch(views[0], [&](const Made& made) {
        const int64_t width = made.runs.inner, gap = pitch_of(width) - width;
        Made behind = made;  // the gaps behind its rows or heads
        behind.data = static_cast<const char*>(made.data) + width * size_of(made.dtype);
        behind.runs.inner = gap;
        const KeptTensor kept = keep_tensor(trainer->stream(), behind);
        for (const double x : kept.values)
          ASSERT_EQ(x, 0) << plan << " " << name_of(dtype) << ": " << made.name;
        tensors += gap > 0;
      });
      EXPECT_GT(tensors, 10) << plan;
    }
}

TEST_P(TrainerTest, PlansAgreeTensorByTensorAtOddSizes) {
  const TrainerOptions o = odd_options(device());
  const RandomBatch batch(o, 9);
  for (const std::string plan : {"fused", "flash"})
    for (const TensorDifference& d : diff_plans(o, plan, "baseline", 1, batch.view())) {
      EXPECT_LE(d.relative, d.bound) << plan << ": " << d.name;
      EXPECT_GT(d.norm, 0) << plan << ": " << d.name;
    }
}

TEST_P(TrainerTest, PlansAgreeTensorByTensor) {
  const TrainerOptions o = debug_options(device());
  const RandomBatch batch(o, 9);
  for (const std::string plan : {"fused", "flash"}) {
    const auto differences = diff_plans(o, plan, "baseline", 1, batch.view());
    int gradients = 0;
    for (const TensorDifference& d : differences) {
      EXPECT_LE(d.relative, d.bound) << plan << ": " << d.name;
      EXPECT_GT(d.norm, 0) << plan << ": " << d.name;
      gradients += d.name.starts_with("gradient of ");
    }
    EXPECT_EQ(gradients, 2 + 9 * o.model.layers);
    EXPECT_GT(std::ssize(differences), gradients + 12 * o.model.layers);
  }
}

// Attention backward in one pass takes the queries of the first in two chunks, and is not there for
// that many heads in the second.
TEST_P(TrainerTest, PlansAgreeHoweverHeadsShareKeys) {
  const struct { int heads, kv_heads, seq; } cases[] = {{4, 2, 300}, {8, 1, 40}};
  for (const auto& c : cases) {
    TrainerOptions o = debug_options(device());
    o.model.heads = c.heads, o.model.kv_heads = c.kv_heads, o.model.head_dim = 8;
    o.seq = o.model.context = c.seq;
    const RandomBatch batch(o, 9);
    for (const TensorDifference& d : diff_plans(o, "flash", "baseline", 1, batch.view()))
      EXPECT_LE(d.relative, d.bound) << c.heads << " heads: " << d.name;
  }
}

TEST_P(TrainerTest, LaterPlansLaunchLess) {
  int64_t step = INT64_MAX, forward = INT64_MAX, backward = INT64_MAX;
  for (const std::string& plan : plan_names()) {
    const TrainerOptions o = debug_options(device(), plan);
    auto trainer = make_trainer(o);
    trainer->initialise(1);
    const RandomBatch batch(o, 1);
    const HostBatch view = batch.view();
    const StepRecord record = trainer->record_step({&view, 1}, 1e-3f, Recorder::Mode::count);
    EXPECT_LT(record.count(), std::exchange(step, record.count())) << plan;
    EXPECT_LT(record.block_forward, std::exchange(forward, record.block_forward)) << plan;
    EXPECT_LT(record.block_backward, std::exchange(backward, record.block_backward)) << plan;
    EXPECT_GT(record.cost().flops, 0);
  }
}

int64_t activation_bytes(const std::string& plan, int layers, int batch, int seq,
                         bool recompute = false) {
  TrainerOptions o = debug_options(kCpu, plan);
  o.model.layers = layers, o.batch = batch, o.seq = seq, o.recompute = recompute;
  return make_trainer(o)->memory().activations;
}

// Bytes grow as they should: linear in batch and layers, and for flash in the sequence's length.
TEST(TrainerMemory, GrowsLinearly) {
  for (const std::string& plan : plan_names()) {
    const auto batch = [&](int b) { return activation_bytes(plan, 2, b, 32); };
    EXPECT_NEAR(double(batch(8) - batch(4)), 2.0 * double(batch(4) - batch(2)),
                0.02 * double(batch(8)));
    const auto layers = [&](int l) { return activation_bytes(plan, l, 2, 32); };
    EXPECT_EQ(layers(4) - layers(3), layers(3) - layers(2));
  }
  const auto flash = [&](int seq) { return double(activation_bytes("flash", 2, 2, seq)); };
  EXPECT_NEAR(flash(1024) - flash(512), 2 * (flash(512) - flash(256)), 0.01 * flash(1024));
  const auto fused = [&](int seq) { return double(activation_bytes("fused", 2, 2, seq)); };
  EXPECT_GT(fused(512) - fused(256),
            2.5 * (fused(256) - fused(128)));  // scores grow with its square
  EXPECT_LT(activation_bytes("flash", 8, 2, 64, true), activation_bytes("flash", 8, 2, 64));
}

TEST(Trainer, RefusesWhatCannotBe) {
  TrainerOptions o = debug_options(kCpu);
  o.plan = "fastest";
  expect_error([&] { make_trainer(o); }, "baseline, fused, flash");
  o = debug_options(kCpu);
  o.dtype = DType::i32;
  expect_error([&] { make_trainer(o); }, "f32 or bf16");
  o = debug_options(kCpu);
  o.batch = o.seq = 1 << 16;
  expect_error([&] { make_trainer(o); }, "more rows than kernels can count");
  o = debug_options(kCpu);
  auto trainer = make_trainer(o);
  RandomBatch batch(o, 1);
  batch.tokens[3] = o.model.vocab;
  const HostBatch view = batch.view();
  expect_error([&] { trainer->step({&view, 1}, 1e-3f); }, "outside the model's vocabulary");
}

TEST_P(TrainerTest, MemoryIsKnownBeforeItIsTaken) {
  for (const std::string& plan : plan_names())
    for (const DType dtype : trained_types(device()))
      for (const int accumulate : {1, 2}) {
        TrainerOptions o = debug_options(device(), plan);
        o.dtype = dtype, o.accumulate = accumulate;
        const TrainerMemory planned = planned_memory(o), taken = make_trainer(o)->memory();
        EXPECT_EQ(planned.weights, taken.weights) << plan << " " << name_of(dtype);
        EXPECT_EQ(planned.gradients, taken.gradients) << plan << " " << name_of(dtype);
        EXPECT_EQ(planned.optimizer, taken.optimizer) << plan << " " << name_of(dtype);
        EXPECT_EQ(planned.activations, taken.activations) << plan << " " << name_of(dtype);
      }
}

}  // namespace
}  // namespace cria::test
