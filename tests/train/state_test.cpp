// A training state in files, and back, part by part: at sizes whose rows have gaps, of tensors larger than a part, and
// without a second copy in memory.
#include "train/state.h"

#include <gtest/gtest.h>

#include "model/safetensors.h"
#include "runtime/memory_use.h"
#include "runtime/on_device.h"
#include "support/files.h"

namespace cria::test {
namespace {

using enum Trainer::State;

TrainerOptions options_of(Device device, int dim, int vocab) {
  return {.model = {.dim = dim,
                    .layers = 1,
                    .heads = 2,
                    .kv_heads = 1,
                    .head_dim = 18,
                    .ffn = 41,
                    .vocab = vocab,
                    .context = 8},
          .device = device,
          .batch = 1,
          .seq = 8};
}

std::vector<float> state_of(Trainer& trainer, Trainer::State which) {
  std::vector<float> out(trainer.map().size());
  trainer.read(which, out);
  return out;
}

class StateTest : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Backends, StateTest, every_backend(), backend_name);

// Files hold Hugging Face's sizes, whatever gaps rows and heads have in memory.
TEST_P(StateTest, FilesHaveNoGaps) {
  const TemporaryFolder folder;
  auto trainer = make_trainer({.model = {.dim = 27,
                                         .layers = 1,
                                         .heads = 4,
                                         .kv_heads = 2,
                                         .head_dim = 6,
                                         .ffn = 37,
                                         .vocab = 53,
                                         .context = 16,
                                         .tied = false},
                               .device = device(),
                               .batch = 1,
                               .seq = 5});
  trainer->initialise(3);
  const auto checkpoint = save_state(*trainer, folder.path(), {.seed = 3, .keep = 1});
  std::vector<float> weights(trainer->map().size());
  trainer->read(Trainer::State::weights, weights);
  const ModelTensors stored(checkpoint);
  EXPECT_EQ(stored.tensors().size(), trainer->map().entries().size());
  for (const WeightEntry& e : trainer->map().entries()) {
    const StoredTensor& tensor = stored.tensors().at(e.name);
    EXPECT_EQ(tensor.shape, e.shape) << e.name;
    std::vector<float> values(e.size());
    read_floats(tensor, 0, values);
    e.runs.each([&](int64_t place, int64_t first, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(values[first + i], weights[e.offset + place + i]) << e.name;
    });
  }

  trainer->initialise(4);
  load_state(*trainer, checkpoint, 3);
  std::vector<float> again(weights.size());
  trainer->read(Trainer::State::weights, again);
  EXPECT_EQ(again, weights);
}

TEST_P(StateTest, ComesBackBitForBitWhereRowsHaveGaps) {
  const TemporaryFolder folder(memory_folder());
  for (const DType dtype : {DType::f32, DType::bf16}) {
    TrainerOptions o = options_of(device(), 65, 20'001);  // an embedding of two parts
    o.dtype = dtype;
    const auto saved = make_trainer(o), loaded = make_trainer(o);
    saved->initialise(3);
    std::vector<float> moment(saved->map().size());
    for (const auto which : {m, v}) {
      init_weights(saved->map(), 4 + uint64_t(which), moment);
      saved->write(which, moment);
    }
    saved->set_steps(7 + int64_t(dtype));
    const auto checkpoint = save_state(*saved, folder.path(), {.seed = 9});
    load_state(*loaded, checkpoint, 9);
    EXPECT_EQ(loaded->steps(), saved->steps());
    for (const auto which : {weights, m, v})
      EXPECT_TRUE(state_of(*loaded, which) == state_of(*saved, which)) << name_of(dtype);
    // The file has the model's own sizes, and is what others read.
    std::vector<float> flat(saved->map().size());
    load_weights(saved->map(), checkpoint, flat);
    EXPECT_TRUE(flat == state_of(*saved, weights)) << name_of(dtype);
    const ModelTensors stored(checkpoint);
    const StoredTensor& o_proj = stored.tensors().at("model.layers.0.self_attn.o_proj.weight");
    EXPECT_EQ(o_proj.shape, (std::vector<int64_t>{65, 36}));
  }
}

TEST_P(StateTest, OtherSettingsAreRefusedBeforeAnythingChanges) {
  const TemporaryFolder folder(memory_folder());
  const TrainerOptions o = options_of(device(), 65, 53);
  const auto saved = make_trainer(o), other = make_trainer(o);
  saved->initialise(3), other->initialise(4);
  const auto checkpoint = save_state(*saved, folder.path(), {.seed = 9});
  const auto before = state_of(*other, weights);
  expect_error([&] { load_state(*other, checkpoint, 10); }, {"cannot resume", "seed 9"});
  EXPECT_TRUE(state_of(*other, weights) == before);
}

// Of the memory that such an operation takes beyond what was taken before it.
template <class F>
size_t most_taken(F&& f) {
  PeakMemory peak(kCpu);
  f();
  return static_cast<size_t>(peak.bytes());
}

TEST(StateMemoryUse, SavingAndLoadingTakeNoSecondCopy) {
  const TemporaryFolder folder(memory_folder());
  const auto trainer = make_trainer(options_of(kCpu, 64, 200'000));
  trainer->initialise(1);
  const size_t copy = trainer->map().size() * sizeof(float), parts = 24 << 20;
  std::filesystem::path checkpoint;
  EXPECT_LT(most_taken([&] { checkpoint = save_state(*trainer, folder.path(), {}); }), parts);
  // Pages of a file that is being read count, too: of the moments', the larger one.
  EXPECT_LT(most_taken([&] { load_state(*trainer, checkpoint, 0); }), 2 * copy + parts);
}

}  // namespace
}  // namespace cria::test
