#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/harness.h"

namespace cria::test {
namespace {

using namespace kernels;

struct Problem {
  int batch, heads, kv_heads, queries, keys, head_dim;
  bool causal;
  DotPrecision precision = DotPrecision::kFp32;
};

// o = softmax(scale q kᵀ) v and lse = log sum exp(scale q kᵀ), head by head. Views q, k, v and o
// are given as they lie in memory: (head, token, element) -> value.
template <class Q, class K, class V, class O, class Lse>
void reference(const Problem& p, const Q& q, const K& k, const V& v, O want, Lse want_lse) {
  const double scale = 1 / std::sqrt(double(p.head_dim));
  const int group = p.heads / p.kv_heads;
  for (int h = 0; h < p.batch * p.heads; ++h)
    for (int i = 0; i < p.queries; ++i) {
      const int seen = p.causal ? i + p.keys - p.queries + 1 : p.keys;
      std::vector<double> weight(seen);
      double top = -INFINITY, total = 0;
      for (int j = 0; j < seen; ++j) {
        double score = 0;
        for (int e = 0; e < p.head_dim; ++e) score += q(h, i, e) * k(h / group, j, e);
        top = std::max(top, weight[j] = score * scale);
      }
      for (double& w : weight) total += w = std::exp(w - top);
      for (int e = 0; e < p.head_dim; ++e) {
        double sum = 0;
        for (int j = 0; j < seen; ++j) sum += weight[j] / total * v(h / group, j, e);
        want(h, i, e) = sum;
      }
      want_lse(h, i) = top + std::log(total);
    }
}

double largest(const std::vector<double>& values) {
  double out = 0;
  for (double x : values) out = std::max(out, std::abs(x));
  return out;
}

// A score sums head_dim products of at most `score_size` in all; its error e changes each weight by
// the factor exp(e), so o by at most 2 e max|v|. Weights are rounded to the operand type before the
// product.
template <class T>
Tolerance output_tolerance(const Problem& p, double q_size, double k_size, double v_size) {
  const double score_size = q_size * k_size * std::sqrt(double(p.head_dim));
  const double products = p.precision == DotPrecision::kTf32
                              ? 2 * kRoundoffTf32
                              : Tolerance{.length = p.head_dim}.bound(1);
  const double weights = sizeof(T) == 2                       ? roundoff(dtype_of<T>)
                         : p.precision == DotPrecision::kTf32 ? kRoundoffTf32
                                                              : 0;
  return {.length = p.keys, .norm = v_size, .inner = products * score_size + weights};
}

void check_attention(auto& t, const Problem& p) {
  using T = ElementOf<decltype(t)>;
  auto& q = t.input("q", {p.batch * p.heads, p.queries, p.head_dim});
  auto& k = t.input("k", {p.batch * p.kv_heads, p.keys, p.head_dim});
  auto& v = t.input("v", {p.batch * p.kv_heads, p.keys, p.head_dim});
  auto& o = t.output("o", {p.batch * p.heads, p.queries, p.head_dim});
  auto& lse = t.fp32_output("lse", {p.batch * p.heads, p.queries});
  reference(
      p, q, k, v, [&](int h, int i, int e) -> double& { return o.want(h, i, e); },
      [&](int h, int i) -> double& { return lse.want(h, i); });
  o.tolerance =
      output_tolerance<T>(p, largest(q.values()), largest(k.values()), largest(v.values()));
  lse.tolerance = o.tolerance;
  lse.tolerance.norm = 1;
  t.run(AttentionForwardArgs<T>{.q = q,
                                .k = k,
                                .v = v,
                                .o = o,
                                .lse = lse,
                                .scale = 1 / std::sqrt(float(p.head_dim)),
                                .causal = p.causal,
                                .precision = p.precision});
}

const bool causal = kernel_test<3>("AttentionCausal",
                                   {.small = {{1, 1, 1},
                                              {1, 1, 64},
                                              {0, 0, 64},
                                              {63, 63, 64},
                                              {64, 64, 64},
                                              {65, 65, 128},
                                              {5, 70, 64},
                                              {1, 130, 64},
                                              {33, 33, 33},
                                              {20, 20, 80},
                                              {17, 40, 192},
                                              {66, 66, 256}},
                                    .large = {{200, 200, 64}, {130, 260, 128}}},
                                   [](auto& t, int queries, int keys, int head_dim) {
                                     check_attention(t, {1, 2, 1, queries, keys, head_dim, true});
                                   });

const bool full = kernel_test<3>(
    "AttentionFull",
    {.small = {{1, 1, 64}, {64, 63, 64}, {65, 129, 64}, {70, 5, 128}, {9, 66, 72}, {3, 40, 200}},
     .large = {{140, 200, 64}}},
    [](auto& t, int queries, int keys, int head_dim) {
      check_attention(t, {1, 2, 1, queries, keys, head_dim, false});
    });

// Heads, key-value heads and head dimension: grouped heads share k and v without repeating them.
const bool grouped =
    kernel_test<3>("AttentionGrouped", {.small = {{4, 1, 64}, {6, 3, 64}, {4, 4, 32}, {8, 2, 128}}},
                   [](auto& t, int heads, int kv_heads, int head_dim) {
                     check_attention(t, {2, heads, kv_heads, 40, 40, head_dim, true});
                   });

// Heads that no configuration but the widest holds: heads that share keys, queries, keys, width,
// causal. Several blocks of both, with stages filled more than once.
const bool wide = kernel_test<5>(
    "AttentionWide",
    {.small = {{2, 70, 200, 256, true},
               {1, 136, 136, 192, true},
               {2, 33, 65, 160, false},
               {3, 20, 41, 136, true},
               {1, 5, 130, 250, false}},
     .large = {{2, 260, 260, 256, true}, {4, 133, 300, 250, true}, {1, 300, 141, 136, false}}},
    [](auto& t, int group, int queries, int keys, int head_dim, bool causal) {
      check_attention(t, {1, 2 * group, 2, queries, keys, head_dim, causal});
    });

// More blocks than fit at once, into the 132 programs that are traced or a GPU's 396: persistent
// ones compute up to four, forth and back.
const bool many = kernel_test<1>("AttentionManyHeads", {.small = {{140}}, .large = {{600}}},
                                 [](auto& t, int heads) {
                                   check_attention(t, {1, heads, heads, 65, 65, 8, true});
                                 },
                                 {DType::bf16});

const bool tf32 = kernel_test<3>(
    "AttentionTf32",
    {.small = {{65, 65, 64}, {40, 70, 128}, {40, 40, 256}, {136, 150, 192}},
     .large = {{200, 260, 256}}},
    [](auto& t, int queries, int keys, int head_dim) {
      check_attention(t, {1, 2, 1, queries, keys, head_dim, true, DotPrecision::kTf32});
    },
    {DType::f32});

TEST(AttentionTf32, IsWhatHeadsOfAnyWidthAreMultipliedIn) {
  for (const int head_dim : {32, 64, 128, 136, 192, 256}) {
    AttentionForwardArgs<float> args{.q = batch_of<const float>(nullptr, 2, 200, head_dim),
                                     .k = batch_of<const float>(nullptr, 2, 200, head_dim),
                                     .v = batch_of<const float>(nullptr, 2, 200, head_dim),
                                     .o = batch_of<float>(nullptr, 2, 200, head_dim),
                                     .precision = DotPrecision::kTf32};
    const Kernel& kernel = kernel_registry().get(args.kernel, DType::f32, Target::trace);
    const auto fitting = kernel.fitting(&args, 90);
    EXPECT_FALSE(fitting.empty()) << head_dim;
    for (const KernelConfig* config : fitting)
      EXPECT_NE(config->name.find("_tf32"), std::string::npos)
          << config->name << ", heads of " << head_dim;
  }
}

// q, k and v as one product leaves them: heads side by side in the rows of a [B * T, (H + 2 G) K]
// matrix.
const bool packed = kernel_test<2>(
    "AttentionPacked", {.small = {{40, 64}, {70, 128}, {33, 40}, {21, 35}}},
    [](auto& t, int tokens, int head_dim) {
      using T = ElementOf<decltype(t)>;
      const Problem p{2, 4, 2, tokens, tokens, head_dim, true};
      const int width = (p.heads + 2 * p.kv_heads) * head_dim, out = p.heads * head_dim;
      auto& qkv = t.input("qkv", {p.batch * tokens, width});
      auto& o = t.output("o", {p.batch * tokens, out});
      auto& lse = t.fp32_output("lse", {p.batch * p.heads, tokens});
      const auto head = [&](int first, int heads) {
        return [&, first, heads](int h, int i, int e) {
          return qkv(h / heads * tokens + i, (first + h % heads) * head_dim + e);
        };
      };
      reference(
          p, head(0, 4), head(4, 2), head(6, 2),
          [&](int h, int i, int e) -> double& {
            return o.want(h / 4 * tokens + i, h % 4 * head_dim + e);
          },
          [&](int h, int i) -> double& { return lse.want(h, i); });
      const double size = largest(qkv.values());
      o.tolerance = output_tolerance<T>(p, size, size, size);
      lse.tolerance = o.tolerance;
      lse.tolerance.norm = 1;
      qkv.set_parts(p.heads + 2 * p.kv_heads), o.set_parts(p.heads);
      const auto view = [&](int first, int heads) {
        return heads_of<const T>(qkv.data() + first * head_dim, p.batch, tokens, heads, head_dim,
                                 width);
      };
      t.run(AttentionForwardArgs<T>{.q = view(0, 4),
                                    .k = view(4, 2),
                                    .v = view(6, 2),
                                    .o = heads_of(o.data(), p.batch, tokens, 4, head_dim, out),
                                    .lse = lse,
                                    .scale = 1 / std::sqrt(float(head_dim))});
    });

// Without one its weights add up to nothing, and a GPU's pipeline waits for a block of keys.
TEST(Attention, EveryQueryMustSeeAKey) {
  const auto fits = [](int queries, int keys, bool causal, Target target) {
    const AttentionForwardArgs<float> args{
        .q = batch_of<const float>(nullptr, 2, queries, 64),
        .k = batch_of<const float>(nullptr, 2, keys, 64),
        .v = batch_of<const float>(nullptr, 2, keys, 64),
        .o = batch_of<float>(nullptr, 2, queries, 64),
        .causal = causal,
    };
    const Kernel* kernel = kernel_registry().find(args.kernel, DType::f32, target);
    return !kernel || !kernel->fitting(&args, 90).empty();
  };
  for (const Target target : {Target::cpu, Target::trace, Target::cuda}) {
    EXPECT_TRUE(fits(5, 1, false, target));
    EXPECT_TRUE(fits(5, 5, true, target));
    EXPECT_TRUE(fits(0, 0, false, target));
    EXPECT_TRUE(fits(0, 0, true, target));
    if (!kernel_registry().find("attention_forward", DType::f32, target)) continue;
    EXPECT_FALSE(fits(5, 0, false, target));
    EXPECT_FALSE(fits(5, 0, true, target));
    EXPECT_FALSE(fits(5, 4, true, target));
  }
}

}  // namespace
}  // namespace cria::test
