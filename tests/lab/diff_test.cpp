// Comparing plans finds an error in one tensor, and no other tensor.
#include "lab/diff.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "runtime/on_device.h"

namespace cria::test {
namespace {

class DiffTest : public ::testing::TestWithParam<DType> {
 protected:
  TrainerOptions options(const std::string& plan) const {
    const Preset& preset = find_preset("debug");
    return {.model = preset.model,
            .plan = plan,
            .dtype = GetParam(),
            .batch = preset.batch,
            .seq = preset.seq};
  }
  // What the plan makes of a batch.
  std::vector<KeptTensor> tensors(const std::string& plan) const {
    const TrainerOptions o = options(plan);
    Rng rng(5);
    std::vector<int32_t> tokens, targets;
    for (int i = 0; i < o.batch * o.seq; ++i) {
      tokens.push_back(static_cast<int32_t>(rng.below(o.model.vocab)));
      targets.push_back(static_cast<int32_t>(rng.below(o.model.vocab)));
    }
    auto trainer = make_trainer(o);
    trainer->initialise(1);
    std::vector<KeptTensor> out;
    trainer->watch({tokens, targets},
                   [&](const Made& made) { out.push_back(keep_tensor(trainer->stream(), made)); });
    return out;
  }
  std::vector<TensorDifference> compare(const std::vector<KeptTensor>& got,
                                        const std::vector<KeptTensor>& want) const {
    Comparison comparison(GetParam(), Precision::full);
    for (const KeptTensor& t : want) comparison.expect(t);
    for (const KeptTensor& t : got) comparison.add(t);
    return comparison.take();
  }
};
INSTANTIATE_TEST_SUITE_P(Types, DiffTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(DiffTest, FindsATenthTooMuch) {
  const auto want = tensors("baseline"), got = tensors("flash");
  for (const TensorDifference& d : compare(got, want))
    EXPECT_FALSE(d.differs()) << d.name << ": " << d.relative << " of " << d.bound;
  for (size_t spoilt = 0; spoilt < got.size(); ++spoilt) {
    auto wrong = got;
    for (float& x : wrong[spoilt].values) x *= 1.1f;
    for (const TensorDifference& d : compare(wrong, want))
      EXPECT_EQ(d.differs(), d.name == wrong[spoilt].name) << d.name;
  }
}

TEST_P(DiffTest, NeverTakesNaNForAnything) {
  const auto want = tensors("baseline");
  auto wrong = want;
  wrong.back().values[0] = NAN;
  for (const TensorDifference& d : compare(wrong, want))
    EXPECT_EQ(d.differs(), d.name == wrong.back().name) << d.name;
}

}  // namespace
}  // namespace cria::test
