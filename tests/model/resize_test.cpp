#include "model/resize.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "support/files.h"

namespace cria {
namespace {

using test::expect_error;

const ModelConfig kDebug = find_preset("debug").model;  // 64 wide, 4 heads of 16, 2 for keys
const ModelConfig kSmall = find_preset("small").model;  // 512 wide, 8 heads of 64, 4 for keys

// Sizes that must come out; 0: as in the model.
void expect_sizes(const ModelConfig& model, const ModelSizes& given, const ModelSizes& want) {
  ModelConfig wanted = model;
  auto set = [](int& size, int value) { size = value > 0 ? value : size; };
  set(wanted.dim, want.dim), set(wanted.layers, want.layers), set(wanted.heads, want.heads);
  set(wanted.kv_heads, want.kv_heads), set(wanted.head_dim, want.head_dim);
  set(wanted.ffn, want.ffn), set(wanted.vocab, want.vocab);
  const ModelConfig got = resize(model, given);
  EXPECT_EQ(config_to_json(got), config_to_json(wanted));
  EXPECT_EQ(resize(got, given), got) << "not the same again";
}

TEST(Resize, NothingGivenChangesNothing) {
  for (const Preset& preset : presets()) expect_sizes(preset.model, {}, {});
  ModelConfig uneven = kDebug;  // heads that together are not as wide as the model
  uneven.head_dim = 24;
  expect_sizes(uneven, {.layers = 5, .vocab = 300}, {.layers = 5, .vocab = 300});
}

TEST(Resize, AllGivenIsAllTaken) {
  const ModelSizes all = {
      .dim = 96, .layers = 3, .heads = 6, .kv_heads = 3, .head_dim = 32, .ffn = 200, .vocab = 500};
  expect_sizes(kDebug, all, all);
}

TEST(Resize, TheRestFollows) {
  // A wider model has more heads, and as much wider a feed-forward part.
  expect_sizes(kDebug, {.dim = 96}, {.dim = 96, .heads = 6, .kv_heads = 3, .ffn = 240});
  expect_sizes(kSmall, {.dim = 768}, {.dim = 768, .heads = 12, .kv_heads = 6, .ffn = 3072});
  expect_sizes(kDebug, {.dim = 80}, {.dim = 80, .heads = 5, .kv_heads = 5, .ffn = 208});
  // Heads share the width.
  expect_sizes(kDebug, {.heads = 8}, {.heads = 8, .kv_heads = 4, .head_dim = 8});
  expect_sizes(kDebug, {.dim = 128, .heads = 4}, {.dim = 128, .head_dim = 32, .ffn = 320});
  expect_sizes(kDebug, {.head_dim = 32}, {.heads = 2, .kv_heads = 1, .head_dim = 32});
  expect_sizes(kDebug, {.heads = 3, .head_dim = 20}, {.heads = 3, .kv_heads = 3, .head_dim = 20});
  expect_sizes(kDebug, {.kv_heads = 1}, {.kv_heads = 1});
}

TEST(Resize, WhatCannotBeIsRefused) {
  const auto refused = [](const ModelSizes& sizes, const std::string& words) {
    expect_error([&] { resize(kDebug, sizes); }, {words});
  };
  refused({.heads = 5}, "5 heads do not divide a dim of 64");
  refused({.dim = 100}, "heads 16 wide do not divide a dim of 100");
  refused({.head_dim = 24}, "heads 24 wide do not divide a dim of 64");
  refused({.kv_heads = 3}, "4 heads cannot share 3 key/value heads");
  refused({.heads = 64}, "head_dim is 1");
  refused({.dim = 1 << 24, .heads = 1 << 20}, "ffn is");
  refused({.dim = 1 << 25}, "dim is 33554432");
}

TEST(RoundWidths, WidthsGrowToTheNextMultipleAndNothingElseChanges) {
  ModelConfig odd = kDebug;
  odd.dim = 65, odd.head_dim = 18, odd.ffn = 160, odd.vocab = 257;
  ModelConfig want = odd;
  want.dim = 72, want.head_dim = 24, want.vocab = 264;
  EXPECT_EQ(round_widths(odd, 8), want);
  EXPECT_EQ(round_widths(want, 8), want);
}

}  // namespace
}  // namespace cria
