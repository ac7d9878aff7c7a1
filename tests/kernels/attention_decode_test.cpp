#include "kernels/attention_decode.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/harness.h"
#include "kernels/products.h"

namespace cria::test {
namespace {

using namespace kernels;

// sizes: sequences, query heads, key heads, columns of a head, keys that count, parts of them. The
// cache, of [B, S, G, K], has room for more keys; what is there must not be read. Where `most` is
// given, the launch is for up to so many keys, and how many count is in memory.
template <class Case>
void check(Case& t, int batch, int heads, int kv_heads, int head_dim, int length, int parts,
           double spread, int most = 0) {
  using T = ElementOf<Case>;
  const int room = std::max(length, most) + 3, width = kv_heads * head_dim,
            sharing = heads / kv_heads;
  auto& q = t.input("q", {batch * kv_heads, sharing, head_dim}, spread);
  auto &k = t.input("k", {batch, room, width}, spread), &v = t.input("v", {batch, room, width});
  auto& o = t.output("o", {batch * kv_heads, sharing, head_dim});
  for (int b = 0; b < batch; ++b)
    for (int r = length; r < room; ++r)
      for (int c = 0; c < width; ++c)
        k.set(int64_t{b} * room + r, c, NAN), v.set(int64_t{b} * room + r, c, NAN);
  k.set_parts(kv_heads), v.set_parts(kv_heads);
  const double scale = 1 / std::sqrt(double(head_dim));
  for (int h = 0; h < batch * heads; ++h) {
    const int b = h / heads, first = h % heads / sharing * head_dim;
    std::vector<double> weight(length);
    double top = -INFINITY, total = 0, largest = 0;  // sum of magnitudes behind a score
    for (int j = 0; j < length; ++j) {
      double size = 0;
      for (int c = 0; c < head_dim; ++c) {
        const double term = scale * q(h / sharing, h % sharing, c) * k(b, j, first + c);
        weight[j] += term, size += std::abs(term);
      }
      top = std::max(top, weight[j]), largest = std::max(largest, size);
    }
    for (double& w : weight) total += w = std::exp(w - top);
    // A score's error e changes its weight by the factor exp(e), and their sum by no more. Weights
    // are rounded to the operand type before the product.
    const double of_scores = 2 * product_error<T>(head_dim, largest, DotPrecision::kFp32);
    const double of_weights =
        sizeof(T) == 2 ? roundoff(dtype_of<T>) : term_roundoff<T>(DotPrecision::kFp32);
    for (int c = 0; c < head_dim; ++c) {
      double sum = 0, size = 0;
      for (int j = 0; j < length; ++j) {
        const double term = weight[j] / total * v(b, j, first + c);
        sum += term, size += std::abs(term);
      }
      o.want(h / sharing, h % sharing, c) = sum;
      o.error(h / sharing, h % sharing, c) =
          of_scores * size + sum_error(length + head_dim, size, of_weights);
    }
  }
  AttentionDecodeArgs<T> args{
      .q = q,
      .k = heads_of<const T>(k.data(), batch, room, kv_heads, head_dim, width),
      .v = heads_of<const T>(v.data(), batch, room, kv_heads, head_dim, width),
      .o = o,
      .scale = float(scale),
      .length = length};
  if (most > 0) {
    auto& position = t.i32_input("position", {1});
    position.set(0, 0, length - 1);
    args.length = most, args.position = position;
    if (length < most) t.cost_is_a_bound();
  }
  if (parts == 1) return t.run(args);
  args.parts = t.fp32_scratch("parts", {batch * kv_heads, parts * sharing, head_dim});
  args.logs = t.fp32_scratch("logs", {batch * kv_heads, parts * sharing});
  if (args.part_count() > 1)
    t.run(args, args.combine());
  else
    t.run(args);
}

const bool decode = kernel_test<6>(
    "AttentionDecode",
    {.small = {{1, 1, 1, 1, 1, 1},
               {1, 2, 2, 64, 31, 4},
               {2, 4, 1, 40, 33, 1},
               {1, 4, 2, 64, 129, 2},
               {1, 5, 1, 80, 17, 1},
               {2, 4, 2, 67, 70, 2},
               {1, 8, 1, 128, 70, 2},
               {1, 18, 1, 64, 100, 2},
               {1, 2, 1, 256, 9, 1},
               {2, 2, 1, 256, 193, 3},
               {1, 1, 1, 130, 34, 1},
               {1, 2, 1, 64, 640, 10}},
     .large = {{2, 12, 4, 64, 1000, 1}, {1, 32, 4, 64, 2000, 30}}},
    [](auto& t, int batch, int heads, int kv_heads, int head_dim, int length, int parts) {
      check(t, batch, heads, kv_heads, head_dim, length, parts, 1);
    },
    kTrainingTypes);
const bool steep = kernel_test<6>(
    "AttentionDecodeLargeScores", {.small = {{1, 4, 1, 64, 100, 1}, {1, 4, 1, 64, 200, 3}}},
    [](auto& t, int batch, int heads, int kv_heads, int head_dim, int length, int parts) {
      check(t, batch, heads, kv_heads, head_dim, length, parts, 4);
    },
    kTrainingTypes);

// One launch for all lengths. 448 keys are cut into more parts than the 449 it is for; parts that
// are not there hold poison.
const bool by_position = kernel_test<7>(
    "AttentionDecodeAtAPosition",
    {.small = {{1, 1, 1, 1, 1, 1, 1},
               {1, 2, 2, 64, 5, 1, 9},
               {1, 4, 2, 64, 1, 2, 129},
               {1, 4, 2, 64, 64, 2, 129},
               {1, 2, 2, 64, 65, 2, 129},
               {1, 6, 2, 64, 129, 2, 129},
               {1, 2, 2, 64, 448, 7, 449},
               {1, 4, 1, 64, 448, 7, 449},
               {2, 8, 1, 128, 70, 3, 200}},
     .large = {{1, 32, 4, 64, 100, 30, 2000}, {1, 32, 4, 64, 1999, 30, 2000}}},
    [](auto& t, int batch, int heads, int kv_heads, int head_dim, int length, int parts, int most) {
      check(t, batch, heads, kv_heads, head_dim, length, parts, 1, most);
    },
    kTrainingTypes);

TEST(AttentionDecode, PartsCoverTheKeysAndNoneIsEmpty) {
  for (const int most : {1, 2, 3, 7, 40}) {
    const KeyParts parts{most};
    int most_parts = 0;
    for (int keys = 1; keys <= 3000; ++keys) {
      const int count = parts.count(keys);
      ASSERT_LE(count, most);
      ASSERT_LT((count - 1) * parts.keys_per_part(keys), keys);
      ASSERT_GE(count * parts.keys_per_part(keys), keys);
      most_parts = std::max(most_parts, count);
      ASSERT_GE(parts.bound(keys), most_parts) << "of up to " << keys << " keys";
    }
  }
}

// At least one key must count, and no more than there are.
TEST(AttentionDecode, LengthIsThatOfKeysThatAreThere) {
  Stream stream(kCpu);
  std::vector<float> some(4 * 64);
  const auto matrix = batch_of(some.data(), 1, 4, 64);
  const auto run = [&](int length) {
    launch(stream, AttentionDecodeArgs<float>{
                       .q = matrix, .k = matrix, .v = matrix, .o = matrix, .length = length});
  };
  for (const int length : {-1, 0, 5}) EXPECT_THROW(run(length), Error) << length;
  run(4);
}

}  // namespace
}  // namespace cria::test
