// A training state in files, and back.
#include "train/state.h"

#include <gtest/gtest.h>

#include "model/safetensors.h"
#include "runtime/on_device.h"
#include "support/files.h"

namespace cria::test {
namespace {

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

}  // namespace
}  // namespace cria::test
