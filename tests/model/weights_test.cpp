#include "model/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "runtime/on_device.h"

namespace cria::test {
namespace {

ModelConfig odd_config(bool tied) {
  return {.dim = 24,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 6,
          .ffn = 37,
          .vocab = 53,
          .context = 16,
          .tied = tied};
}

TEST(WeightMap, EveryWeightHasAPlaceOfItsOwn) {
  for (const bool tied : {true, false}) {
    const WeightMap map(odd_config(tied));
    int64_t end = 0;
    std::set<std::string> names;
    for (const WeightEntry& e : map.entries()) {
      EXPECT_GE(e.offset, end) << e.name;
      end = e.offset + e.size();
      EXPECT_TRUE(names.insert(e.name).second) << e.name;
    }
    EXPECT_LE(end, map.size());
    EXPECT_EQ(names.size(), 2u + 2 * 9 + (tied ? 0 : 1));
  }
}

TEST(WeightMap, MatricesComeBeforeVectors) {
  const WeightMap map(odd_config(false));
  for (const WeightEntry& e : map.entries())
    EXPECT_EQ(e.rows > 1, e.offset < map.matrices()) << e.name;
}

TEST(WeightMap, CountsLlama1b) {
  EXPECT_EQ(WeightMap(find_preset("llama-1b").model).parameters(), 1235814400);
}

TEST(WeightMap, RefusesWhatNoMemoryHolds) {
  ModelConfig c = odd_config(true);
  c.dim = c.vocab = c.ffn = 1 << 24;
  expect_error([&] { WeightMap map(c); }, "no memory holds");
}

TEST(Weights, JoinedViewsCoverTheirParts) {
  const ModelConfig c = odd_config(true);
  const WeightMap map(c);
  std::vector<float> data(map.size());
  const Weights<float> w = view_weights(map, c, data.data());
  for (const LayerWeights<float>& l : w.layers) {
    EXPECT_EQ(l.qkv.row(0), l.q.row(0));
    EXPECT_EQ(l.qkv.row(l.q.rows), l.k.row(0));
    EXPECT_EQ(l.qkv.row(l.q.rows + l.k.rows), l.v.row(0));
    EXPECT_EQ(l.qkv.rows, l.q.rows + l.k.rows + l.v.rows);
    EXPECT_EQ(l.gate_up.row(l.gate.rows), l.up.row(0));
  }
  EXPECT_EQ(w.head.data, w.embedding.data);
}

TEST(Weights, InitialisationIsNormalAndSeeded) {
  const ModelConfig c = find_preset("debug").model;
  const WeightMap map(c);
  std::vector<float> a(map.size()), b(map.size()), other(map.size());
  init_weights(map, 7, a), init_weights(map, 7, b), init_weights(map, 8, other);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, other);
  for (const WeightEntry& e : map.entries()) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < e.size(); ++i)
      sum += a[e.offset + i], squares += a[e.offset + i] * a[e.offset + i];
    const double n = double(e.size());
    if (e.rows == 1) {
      EXPECT_EQ(sum, n) << e.name;
    } else {  // five deviations of mean and variance
      EXPECT_NEAR(sum / n, 0, 5 * 0.02 / std::sqrt(n)) << e.name;
      EXPECT_NEAR(squares / n, 0.0004, 5 * 0.0004 * std::sqrt(2 / n)) << e.name;
    }
  }
}

}  // namespace
}  // namespace cria::test
