#include "kernels/place_qkv.h"

#include <cmath>

#include "kernels/harness.h"

namespace cria::test {
namespace {

using namespace kernels;

// sizes: query heads, key heads, columns of a head, positions in the cache, the token's. The cache
// is of [S, G, K]; all but a row of it stays as it is.
template <class Case>
void check(Case& t, int heads, int kv_heads, int head_dim, int room, int at, bool in_place) {
  using T = ElementOf<Case>;
  const int half = head_dim / 2, width = kv_heads * head_dim;
  auto& q = in_place ? t.inout("q", {heads, head_dim}) : t.input("q", {heads, head_dim});
  auto& queries = in_place ? q : t.output("queries", {heads, head_dim});
  auto &k = t.input("k", {kv_heads, head_dim}), &v = t.input("v", {kv_heads, head_dim});
  auto &keys = t.inout("keys", {room, width}), &values = t.inout("values", {room, width});
  auto &cos = t.fp32_input("cos", {room, half}), &sin = t.fp32_input("sin", {room, half});
  for (int i = 0; i < half; ++i) cos.set(at, i, std::cos(at + i)), sin.set(at, i, std::sin(at + i));
  auto& position = t.i32_input("position", {1});
  position.set(0, 0, at);
  const auto turned = [&](auto& x, int head, int col) {
    const int pair = col % half;
    const double low = x(head, pair), high = x(head, pair + half), c = cos(at, pair),
                 s = sin(at, pair);
    return col < half ? low * c - high * s : high * c + low * s;
  };
  for (int h = 0; h < heads; ++h)
    for (int c = 0; c < head_dim; ++c) queries.want(h, c) = turned(q, h, c);
  for (int r = 0; r < room; ++r)
    for (int c = 0; c < width; ++c) {
      const int head = c / head_dim, col = c % head_dim;
      keys.want(r, c) = r == at ? turned(k, head, col) : keys(r, c);
      values.want(r, c) = r == at ? v(head, col) : values(r, c);
    }
  for (auto* y : {&queries, &keys}) y->tolerance = {.length = 2, .norm = 6};
  t.run(PlaceQkvArgs<T>{.q = q,
                        .k = k,
                        .v = v,
                        .queries = queries,
                        .keys = heads_of(keys.data(), 1, room, kv_heads, head_dim, width),
                        .values = heads_of(values.data(), 1, room, kv_heads, head_dim, width),
                        .cos = cos,
                        .sin = sin,
                        .position = position});
}

const Sizes<5> kSizes = {.small = {{1, 1, 2, 1, 0},
                                   {4, 2, 64, 9, 8},
                                   {9, 3, 62, 5, 0},
                                   {8, 8, 66, 4, 2},
                                   {17, 1, 128, 3, 1},
                                   {3, 3, 130, 6, 5},
                                   {2, 1, 256, 3, 1}},
                         .large = {{32, 4, 64, 2048, 2047}}};
const bool apart = kernel_test<5>(
    "PlaceQkv", kSizes,
    [](auto& t, int h, int g, int k, int room, int at) { check(t, h, g, k, room, at, false); },
    kTrainingTypes);
const bool in_place = kernel_test<5>(
    "PlaceQkvInPlace", kSizes,
    [](auto& t, int h, int g, int k, int room, int at) { check(t, h, g, k, room, at, true); },
    kTrainingTypes);

TEST(PlaceQkv, OddAndWideHeadsAreRefused) {
  Stream stream(kCpu);
  std::vector<float> some(600);
  const int32_t position = 0;
  for (const int head_dim : {63, 258}) {
    const auto row = matrix_of(some.data(), 1, head_dim);
    const auto table = matrix_of<const float>(some.data(), 1, head_dim / 2);
    EXPECT_THROW(launch(stream, PlaceQkvArgs<float>{.q = row,
                                                    .k = row,
                                                    .v = row,
                                                    .queries = row,
                                                    .keys = row,
                                                    .values = row,
                                                    .cos = table,
                                                    .sin = table,
                                                    .position = vector_of(&position, 1)}),
                 Error);
  }
}

}  // namespace
}  // namespace cria::test
