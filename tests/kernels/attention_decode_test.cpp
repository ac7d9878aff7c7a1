#include "kernels/attention_decode.h"

#include <cmath>

#include "kernels/harness.h"

namespace cria::test {
namespace {

using namespace kernels;

// sizes: sequences, query heads, key heads, columns of a head, keys that count. The cache, of
// [B, S, G, K], has room for more keys; what is there must not be read.
template <class Case>
void check(Case& t, int batch, int heads, int kv_heads, int head_dim, int length, double spread) {
  using T = ElementOf<Case>;
  const int room = length + 3, width = kv_heads * head_dim;
  auto& q = t.input("q", {batch * heads, 1, head_dim}, spread);
  auto &k = t.input("k", {batch, room, width}, spread), &v = t.input("v", {batch, room, width});
  auto& o = t.output("o", {batch * heads, 1, head_dim});
  for (int b = 0; b < batch; ++b)
    for (int r = length; r < room; ++r)
      for (int c = 0; c < width; ++c)
        k.set(int64_t{b} * room + r, c, NAN), v.set(int64_t{b} * room + r, c, NAN);
  const double scale = 1 / std::sqrt(double(head_dim));
  double most = 1;
  for (int h = 0; h < batch * heads; ++h) {
    const int b = h / heads, first = h % heads / (heads / kv_heads) * head_dim;
    std::vector<double> score(length);
    double top = -INFINITY, total = 0;
    for (int j = 0; j < length; ++j) {
      for (int c = 0; c < head_dim; ++c) score[j] += scale * q(h, 0, c) * k(b, j, first + c);
      top = std::max(top, score[j]), most = std::max(most, std::abs(score[j]));
    }
    for (double& s : score) total += s = std::exp(s - top);
    for (int c = 0; c < head_dim; ++c)
      for (int j = 0; j < length; ++j) o.want(h, 0, c) += score[j] / total * v(b, j, first + c);
  }
  // Weights are as uncertain as the largest score is.
  o.tolerance = {.length = length + head_dim, .norm = 4 * most};
  t.run(AttentionDecodeArgs<T>{
      .q = q,
      .k = heads_of<const T>(k.data(), batch, room, kv_heads, head_dim, width),
      .v = heads_of<const T>(v.data(), batch, room, kv_heads, head_dim, width),
      .o = o,
      .scale = float(scale),
      .length = length});
}

const bool decode =
    kernel_test<5>("AttentionDecode",
                   {.small = {{1, 1, 1, 1, 1},
                              {1, 2, 2, 64, 31},
                              {2, 4, 1, 40, 33},
                              {1, 4, 2, 64, 129},
                              {1, 5, 1, 80, 17},
                              {1, 8, 1, 128, 70},
                              {1, 2, 1, 256, 9},
                              {1, 1, 1, 130, 34}},
                    .large = {{2, 12, 4, 64, 1000}}},
                   [](auto& t, int batch, int heads, int kv_heads, int head_dim, int length) {
                     check(t, batch, heads, kv_heads, head_dim, length, 1);
                   });
const bool steep =
    kernel_test<5>("AttentionDecodeLargeScores", {.small = {{1, 4, 1, 64, 100}}},
                   [](auto& t, int batch, int heads, int kv_heads, int head_dim, int length) {
                     check(t, batch, heads, kv_heads, head_dim, length, 4);
                   });

}  // namespace
}  // namespace cria::test
