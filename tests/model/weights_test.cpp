#include "model/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/rng.h"
#include "runtime/on_device.h"

namespace cria::test {
namespace {

ModelConfig odd_config(bool tied) {
  return {.dim = 27,
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
      int64_t elements = 0, next = 0;
      e.runs.each([&](int64_t place, int64_t first, int64_t count) {
        EXPECT_GE(e.offset + place, end) << e.name;
        EXPECT_EQ(first, next) << e.name;
        end = e.offset + place + count, next = first + count, elements += count;
      });
      EXPECT_EQ(elements, e.size()) << e.name;
      EXPECT_EQ(elements, e.is_matrix() ? e.shape[0] * e.shape[1] : e.shape[0]) << e.name;
      EXPECT_TRUE(names.insert(e.name).second) << e.name;
    }
    EXPECT_LE(end, map.size());
    EXPECT_EQ(names.size(), 2u + 2 * 9 + (tied ? 0 : 1));
  }
}

TEST(WeightMap, MatricesComeBeforeVectors) {
  const WeightMap map(odd_config(false));
  for (const WeightEntry& e : map.entries())
    EXPECT_EQ(e.is_matrix(), e.offset < map.matrices()) << e.name;
}

// What a kernel takes as an operand begins and steps at whole 16 bytes of every type: rows, parts of
// joined matrices, and heads in either direction. Behind a matrix there is room for rows that make
// its height whole, too.
TEST(WeightMap, PartsBeginAtWholeVectors) {
  const ModelConfig c = odd_config(false);
  const WeightMap map(c);
  std::vector<float> data(map.size());
  for (size_t i = 0; i < map.entries().size(); ++i) {
    const WeightEntry& e = map.entries()[i];
    EXPECT_EQ(e.offset % 8, 0) << e.name;
    EXPECT_EQ(e.ld % 8, 0) << e.name;
    EXPECT_GE(e.ld, e.cols) << e.name;
    if (!e.is_matrix()) continue;
    const int64_t end = i + 1 < map.entries().size() ? map.entries()[i + 1].offset : map.matrices();
    EXPECT_GE(end - e.offset, pitch_of(e.rows) * e.ld) << e.name;
  }
  const WeightEntry& q = map.find("model.layers.1.self_attn.q_proj.weight");
  const WeightEntry& o = map.find("model.layers.1.self_attn.o_proj.weight");
  EXPECT_EQ(q.rows, 4 * 8);
  EXPECT_EQ(o.cols, 4 * 8);
  EXPECT_EQ(q.shape, (std::vector<int64_t>{4 * 6, 27}));
  EXPECT_EQ(o.shape, (std::vector<int64_t>{27, 4 * 6}));
  // Row 7 of q is the second of head 1, column 7 of o likewise.
  std::vector<int64_t> q_row(q.size(), -1), o_column(o.size(), -1);
  const auto places = [](const WeightEntry& e, std::vector<int64_t>& out) {
    e.runs.each([&](int64_t place, int64_t first, int64_t count) {
      for (int64_t i = 0; i < count; ++i) out[first + i] = place + i;
    });
  };
  places(q, q_row), places(o, o_column);
  EXPECT_EQ(q_row[7 * 27], 9 * 32);
  EXPECT_EQ(o_column[2 * 24 + 7], 2 * 32 + 9);
}

TEST(WeightMap, WithoutGapsMatricesLieAsInFiles) {
  const WeightMap map(find_preset("small").model);
  for (const WeightEntry& e : map.entries()) {
    int runs = 0;
    e.runs.each([&](int64_t, int64_t, int64_t) { ++runs; });
    EXPECT_EQ(runs, 1) << e.name;
  }
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
    EXPECT_EQ(l.gate_up.row(pitch_of(l.gate.rows)), l.up.row(0));
    EXPECT_EQ(l.gate_up.rows, 2 * pitch_of(l.gate.rows));
  }
  EXPECT_EQ(w.head.data, w.embedding.data);
}

// A tensor's numbers follow each other as in its file, wherever they lie; gaps are zeros.
TEST(Weights, AnyPartIsInitialisedAsInTheWhole) {
  for (const ModelConfig& c : {odd_config(false), find_preset("debug").model}) {
    const WeightMap map(c);
    std::vector<float> want(map.size()), whole(map.size(), NAN);
    uint64_t stream = 0;
    for (const WeightEntry& e : map.entries()) {
      std::vector<float> values(e.size(), 1.f);
      if (e.is_matrix()) Rng(7, stream).fill_normal(values, 0.3f);
      e.runs.each([&](int64_t place, int64_t first, int64_t count) {
        std::copy_n(values.begin() + first, count, want.begin() + e.offset + place);
      });
      ++stream;
    }
    init_weights(map, 7, whole, 0.3f);
    EXPECT_EQ(whole, want);
    for (const int64_t length : {1, 7, 1000, 5003}) {
      std::vector<float> parts(map.size(), NAN);
      for (int64_t begin = 0; begin < map.size(); begin += length)
        init_part(map, 7, 0.3f, begin,
                  std::span(parts).subspan(begin, std::min(length, map.size() - begin)));
      EXPECT_EQ(parts, want) << length;
    }
  }
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
    for (int64_t i = e.offset; i < e.offset + e.size(); ++i)  // this model has no gaps
      sum += a[i], squares += a[i] * a[i];
    const double n = double(e.size());
    if (!e.is_matrix()) {
      EXPECT_EQ(sum, n) << e.name;
    } else {  // five deviations of mean and variance
      EXPECT_NEAR(sum / n, 0, 5 * 0.02 / std::sqrt(n)) << e.name;
      EXPECT_NEAR(squares / n, 0.0004, 5 * 0.0004 * std::sqrt(2 / n)) << e.name;
    }
  }
}

// The values are those of the file's element, wherever gaps put it; gaps are zeros.
TEST(Weights, GapsDoNotChangeTheFirstWeights) {
  const WeightMap map(odd_config(true));
  std::vector<float> data(map.size(), NAN);
  init_weights(map, 7, data);
  size_t zeros = 0, all = 0;
  uint64_t stream = 0;
  for (const WeightEntry& e : map.entries()) {
    std::vector<float> want(e.size(), 1.f);
    if (e.is_matrix()) Rng(7, stream).fill_normal(want, 0.02f);
    ++stream;
    e.runs.each([&](int64_t place, int64_t first, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(data[e.offset + place + i], want[first + i]) << e.name;
    });
    all += want.size();
  }
  for (const float x : data) zeros += x == 0;
  EXPECT_EQ(zeros, data.size() - all);
}

}  // namespace
}  // namespace cria::test
