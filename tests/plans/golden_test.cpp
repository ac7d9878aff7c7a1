// Every plan on every device in every precision against a float64 oracle: logits, loss, the
// gradient of every weight, and ten steps of AdamW.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/json.h"
#include "lab/diff.h"
#include "model/config.h"
#include "model/safetensors.h"
#include "runtime/on_device.h"
#include "support/compare.h"
#include "support/places.h"
#include "train/trainer.h"

namespace cria::test {
namespace {

namespace fs = std::filesystem;

// A file that tools/oracle.py has written.
struct Golden {
  ModelConfig config;
  int batch = 0, seq = 0;
  std::vector<int32_t> tokens, targets;
  std::vector<double> logits, losses, norms, final_sums;
  std::map<std::string, std::vector<float>> weights;
  std::map<std::string, std::vector<double>> gradients;
  std::vector<std::string> names;  // of final_sums

  HostBatch host_batch() const { return {tokens, targets}; }
};

std::vector<float> floats(const StoredTensor& t) {
  std::vector<float> out(t.bytes.size() / sizeof(float));
  read_floats(t, 0, out);
  return out;
}

std::vector<double> doubles(const StoredTensor& t) {
  const auto values = floats(t);
  return {values.begin(), values.end()};
}

std::vector<int32_t> integers(const StoredTensor& t) {
  std::vector<int32_t> out(t.bytes.size() / sizeof(int32_t));
  std::memcpy(out.data(), t.bytes.data(), t.bytes.size());
  return out;
}

Golden read_golden(const std::string& name) {
  const fs::path path = test::in_repository("tests/plans/goldens") / (name + ".safetensors");
  const SafetensorsFile file(path);
  Golden g;
  g.config = config_from_json(Json::parse(file.metadata().at("config")), path.string());
  g.names = Json::parse(file.metadata().at("parameters")).get<std::vector<std::string>>();
  for (const StoredTensor& t : file.tensors()) {
    if (t.name == "tokens") {
      g.tokens = integers(t);
      g.batch = static_cast<int>(t.shape.at(0)), g.seq = static_cast<int>(t.shape.at(1));
    }
    if (t.name == "targets") g.targets = integers(t);
    if (t.name == "logits") g.logits = doubles(t);
    if (t.name == "losses") g.losses = doubles(t);
    if (t.name == "grad_norms") g.norms = doubles(t);
    if (t.name == "final_sums") g.final_sums = doubles(t);
    if (t.name.starts_with("weights.")) g.weights[t.name.substr(8)] = floats(t);
    if (t.name.starts_with("grads.")) g.gradients[t.name.substr(6)] = doubles(t);
  }
  return g;
}

struct GoldenRun {
  std::string golden, plan;
  Backend backend;
  DType dtype = DType::f32;
  Precision precision = Precision::full;
  bool recompute = false;
};

std::vector<GoldenRun> all_runs() {
  std::vector<GoldenRun> runs;
  for (const std::string golden : {"gqa_untied", "mha_tied", "wide_heads", "llama3_rope"})
    for (const std::string& plan : plan_names()) {
      runs.push_back({golden, plan, Backend::cpu});
      runs.push_back({golden, plan, Backend::cpu, DType::bf16});
      runs.push_back({golden, plan, Backend::cuda});
      runs.push_back({golden, plan, Backend::cuda, DType::f32, Precision::tf32});
      runs.push_back({golden, plan, Backend::cuda, DType::bf16});
      if (plan != "flash") continue;
      runs.push_back({golden, plan, Backend::cpu, DType::f32, Precision::full, true});
      runs.push_back({golden, plan, Backend::cuda, DType::bf16, Precision::full, true});
    }
  return runs;
}

std::string run_name(const ::testing::TestParamInfo<GoldenRun>& info) {
  const GoldenRun& r = info.param;
  return r.golden + "_" + r.plan + (r.recompute ? "_recompute" : "") +
         (r.backend == Backend::cuda ? "_cuda_" : "_cpu_") +
         (r.precision == Precision::tf32 ? "tf32" : name_of(r.dtype));
}

class GoldenTest : public ::testing::TestWithParam<GoldenRun> {
 protected:
  void SetUp() override {
    const GoldenRun& run = GetParam();
    if (run.backend == Backend::cuda && !has_cuda()) GTEST_SKIP() << "no CUDA device";
    golden_ = read_golden(run.golden);
    trainer_ = make_trainer({.model = golden_.config,
                             .plan = run.plan,
                             .device = {run.backend, 0},
                             .dtype = run.dtype,
                             .precision = run.precision,
                             .batch = golden_.batch,
                             .seq = golden_.seq,
                             .recompute = run.recompute});
    std::vector<float> flat(trainer_->map().size());
    trainer_->write(Trainer::State::m, flat);
    trainer_->write(Trainer::State::v, flat);
    for (const WeightEntry& e : trainer_->map().entries()) {
      const auto& values = golden_.weights.at(e.name);
      ASSERT_EQ(int64_t(values.size()), e.size()) << e.name;
      e.runs.each([&](int64_t place, int64_t first, int64_t count) {
        std::copy_n(values.begin() + first, count, flat.begin() + e.offset + place);
      });
    }
    trainer_->write(Trainer::State::weights, flat);
  }

  // A value meets about 14 roundings on its way forward through a block, and 20 more on its way
  // back.
  double forward_bound() const { return bound(14.0 * golden_.config.layers + 4); }
  double backward_bound(int layer = 0) const {
    return bound(14.0 * golden_.config.layers + 4 + 20.0 * (golden_.config.layers - layer) + 4);
  }
  double bound(double roundings) const {
    const auto [dtype, precision] = std::pair(GetParam().dtype, GetParam().precision);
    if (dtype == DType::f32) return stages_bound(stage_roundoff(dtype, precision), roundings);
    // The oracle does not round its weights, and these models are larger than at initialisation,
    // so that softmax and products make errors grow.
    return 2 * roundings_bound(roundoff(dtype), 2 * roundings);
  }
  // Of the gradient of this weight. It sums over tokens, and the sums partly cancel: the errors
  // weigh twice.
  double gradient_bound(const std::string& weight) const {
    const ModelConfig& c = golden_.config;
    int layer = weight.find("embed_tokens") == std::string::npos ? c.layers : 0;
    if (const size_t at = weight.find("layers."); at != std::string::npos)
      layer = std::stoi(weight.substr(at + 7));
    return 2 * backward_bound(layer);
  }

  // By the whole tensor's length, and no element far off by the tensor's largest.
  static void expect_near(const std::vector<double>& got, const std::vector<double>& want,
                          double bound, double element_bound, const std::string& name) {
    ASSERT_EQ(got.size(), want.size()) << name;
    double error = 0, length = 0, worst = 0, largest = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      const double e = got[i] - want[i];
      error += e * e, length += want[i] * want[i];
      worst = std::isnan(e) ? INFINITY : std::max(worst, std::abs(e));
      largest = std::max(largest, std::abs(want[i]));
    }
    EXPECT_GT(length, 0) << name << ": the oracle's values are all zero and prove nothing";
    EXPECT_LE(std::sqrt(error / length), bound) << name;
    EXPECT_LE(worst, element_bound * largest) << name;
  }

  std::vector<double> to_host(const Made& t) const {
    const std::vector<float> values = keep_tensor(trainer_->stream(), t).values;
    return {values.begin(), values.end()};
  }

  Golden golden_;
  std::unique_ptr<Trainer> trainer_;
};
INSTANTIATE_TEST_SUITE_P(Plans, GoldenTest, ::testing::ValuesIn(all_runs()), run_name);

TEST_P(GoldenTest, LogitsLossAndEveryGradient) {
  EXPECT_NEAR(trainer_->evaluate(golden_.host_batch()), golden_.losses[0],
              forward_bound() * golden_.losses[0]);
  size_t gradients = 0;
  trainer_->watch(golden_.host_batch(), [&](const Made& made) {
    if (made.name == "logits")
      expect_near(to_host(made), golden_.logits, forward_bound(), 4 * forward_bound(), "logits");
    if (!made.name.starts_with("gradient of ")) return;
    ++gradients;
    // The largest elements are not those that cancel.
    const double bound = gradient_bound(made.name);
    expect_near(to_host(made), golden_.gradients.at(made.name.substr(12)), bound, 2 * bound,
                made.name);
  });
  EXPECT_EQ(gradients, golden_.gradients.size());
}

TEST_P(GoldenTest, TenStepsOfAdamW) {
  const HostBatch batch = golden_.host_batch();
  for (int step = 0; step < 10; ++step) {
    trainer_->step({&batch, 1}, 1e-3f);
    // What one step gets wrong is carried into all that follow.
    const double bound = forward_bound() * std::sqrt(1.0 + step);
    EXPECT_NEAR(trainer_->loss(), golden_.losses[step], bound * golden_.losses[step])
        << "step " << step;
    EXPECT_NEAR(trainer_->gradient_norm(), golden_.norms[step], 2 * bound * golden_.norms[step])
        << "step " << step;
  }
  EXPECT_NEAR(trainer_->evaluate(batch), golden_.losses[10],
              forward_bound() * std::sqrt(11.0) * golden_.losses[10]);
  std::vector<float> weights(trainer_->map().size());
  trainer_->read(Trainer::State::weights, weights);
  for (size_t i = 0; i < golden_.names.size(); ++i) {
    const WeightEntry& e = trainer_->map().find(golden_.names[i]);
    double squares = 0;
    e.runs.each([&](int64_t place, int64_t, int64_t count) {
      for (int64_t j = e.offset + place; j < e.offset + place + count; ++j)
        squares += double(weights[j]) * weights[j];
    });
    // Weights have moved by at most ten steps of the learning rate; the moves may be off by the
    // bound.
    const double moved = 10 * 1e-3 * std::sqrt(double(e.size()));
    EXPECT_NEAR(std::sqrt(squares), std::sqrt(golden_.final_sums[2 * i + 1]),
                2 * backward_bound() * moved + 1e-6 * std::sqrt(squares))
        << e.name;
  }
}

}  // namespace
}  // namespace cria::test
