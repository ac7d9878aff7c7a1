#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "kernels/attention_backward_qkv.h"
#include "kernels/attention_reference.h"
#include "kernels/harness.h"

namespace cria::test {
namespace {

using namespace kernels;

using Problem = AttentionProblem;

// A score's error e changes its weight by the factor exp(e); weights and their gradients are
// rounded to the operand type before they are multiplied.
template <class T>
Tolerance tolerance_of(const Problem& p, const Inputs& in, double norm, int length) {
  const auto longest = [&](const Values& x) {
    double most = 0;
    for (size_t r = 0; r < x.size(); r += p.head_dim)
      most = std::max(most, dot(&x[r], &x[r], p.head_dim));
    return std::sqrt(most);
  };
  const bool tf32 = p.precision == DotPrecision::kTf32;
  const double score_size = p.scale() * longest(in.q) * longest(in.k) + 1;
  const double products = tf32 ? 2 * kRoundoffTf32 : Tolerance{.length = p.head_dim}.bound(1);
  const double rounded = sizeof(T) == 2 ? roundoff(dtype_of<T>) : tf32 ? 2 * kRoundoffTf32 : 0;
  return {.length = length, .norm = norm, .inner = products * score_size + rounded};
}

// cos, sin: [keys, head_dim / 2]. Turns the rows of a head's gradient back, the last at the last
// position.
void turn_back(Values& x, const Problem& p, int tokens, auto& cos, auto& sin) {
  const int half = p.head_dim / 2;
  for (size_t row = 0; row < x.size() / p.head_dim; ++row)
    for (int i = 0; i < half; ++i) {
      const int64_t position = p.keys - tokens + int64_t(row) % tokens;
      double &low = x[row * p.head_dim + i], &high = x[row * p.head_dim + i + half];
      const double a = low, b = high, c = cos(position, i), s = sin(position, i);
      low = a * c + b * s, high = b * c - a * s;
    }
}

template <class T>
struct Views {
  Tensor<const T> q, k, v, dout;
  Tensor<T> dq, dk, dv;
};
// Makes what the forward pass leaves, has `expect` say what is wanted, and runs both kernels on the
// views.
template <class Case, class Views>
void run_backward(Case& t, const Problem& p, const Inputs& in, const Views& views,
                  const std::function<void(const Gradients&)>& expect) {
  using T = ElementOf<Case>;
  auto& o = t.input("o", {p.heads, p.queries, p.head_dim});
  auto& lse = t.fp32_input("lse", {p.heads, p.queries});
  auto& delta = t.fp32_output("delta", {p.heads, p.queries});
  const Forward saved = forward(p, in);
  for (size_t i = 0; i < saved.o.size(); ++i) o.set(i / p.head_dim, i % p.head_dim, saved.o[i]);
  for (size_t i = 0; i < saved.lse.size(); ++i) lse.set(i / p.queries, i % p.queries, saved.lse[i]);
  Gradients g = backward(p, in, o.values());
  for (size_t i = 0; i < g.delta.size(); ++i) delta.want(i / p.queries, i % p.queries) = g.delta[i];
  delta.tolerance = {.length = p.head_dim, .norm = g.delta_norm};
  AttentionBackwardInputs<T> inputs{.q = views.q,
                                    .k = views.k,
                                    .v = views.v,
                                    .dout = views.dout,
                                    .lse = lse,
                                    .scale = float(p.scale()),
                                    .causal = p.causal,
                                    .precision = p.precision};
  if (p.turns) {
    auto &cos = t.fp32_input("cos", {p.keys, p.head_dim / 2}),
         &sin = t.fp32_input("sin", {p.keys, p.head_dim / 2});
    for (int j = 0; j < p.keys; ++j)
      for (int i = 0; i < p.head_dim / 2; ++i)
        cos.set(j, i, std::cos(0.7 * j / (i + 1))), sin.set(j, i, std::sin(0.7 * j / (i + 1)));
    inputs.cos = cos, inputs.sin = sin;
    turn_back(g.dq, p, p.queries, cos, sin), turn_back(g.dk, p, p.keys, cos, sin);
    g.dq_norm *= 2, g.dk_norm *= 2;  // each element comes from two
  }
  expect(g);
  if (p.one_pass) {
    AttentionBackwardQkvArgs<T> args{inputs, o, views.dq, views.dk, views.dv, delta, {}};
    args.so_far = t.fp32_scratch("so_far", {2 * p.kv_heads, args.seen_again(), p.head_dim});
    t.run(args);
    return;
  }
  t.run(AttentionBackwardQArgs<T>{inputs, o, views.dq, delta},
        AttentionBackwardKvArgs<T>{inputs, delta, views.dk, views.dv});
}

// Operands of their own for everything; `spoil` may change q and k first.
void check_backward(auto& t, const Problem& p, auto spoil) {
  using T = ElementOf<decltype(t)>;
  auto& q = t.input("q", {p.heads, p.queries, p.head_dim});
  auto& k = t.input("k", {p.kv_heads, p.keys, p.head_dim});
  auto& v = t.input("v", {p.kv_heads, p.keys, p.head_dim});
  auto& dout = t.input("dout", {p.heads, p.queries, p.head_dim});
  auto& dq = t.output("dq", {p.heads, p.queries, p.head_dim});
  auto& dk = t.output("dk", {p.kv_heads, p.keys, p.head_dim});
  auto& dv = t.output("dv", {p.kv_heads, p.keys, p.head_dim});
  spoil(q, k);
  const Inputs in{q.values(), k.values(), v.values(), dout.values()};
  const auto expect = [&](auto& out, const Values& want, double norm, int length) {
    for (size_t i = 0; i < want.size(); ++i) out.want(i / p.head_dim, i % p.head_dim) = want[i];
    out.tolerance = tolerance_of<T>(p, in, norm, length);
  };
  run_backward(t, p, in, Views<T>{q, k, v, dout, dq, dk, dv}, [&](const Gradients& g) {
    expect(dq, g.dq, g.dq_norm, p.keys);
    expect(dk, g.dk, g.dk_norm, p.group() * p.queries);
    expect(dv, g.dv, g.dv_norm, p.group() * p.queries);
  });
}
void check_backward(auto& t, const Problem& p) {
  check_backward(t, p, [](auto&, auto&) {});
}

const bool causal = kernel_test<3>(
    "AttentionBackwardCausal",
    {.small = {{1, 1, 1},
               {1, 1, 64},
               {0, 0, 64},
               {63, 63, 64},
               {64, 64, 64},
               {68, 68, 128},
               {5, 70, 64},
               {4, 132, 64},
               {33, 33, 33},
               {20, 20, 80},
               {17, 40, 192},
               {36, 36, 256}},
     .large = {{200, 200, 64}, {260, 260, 64}, {132, 260, 128}}},
    [](auto& t, int queries, int keys, int head_dim) {
      check_backward(t, {2, 1, queries, keys, head_dim, true});
    },
    kTrainingTypes);

const bool full = kernel_test<3>(
    "AttentionBackwardFull",
    {.small = {{1, 1, 64}, {64, 63, 64}, {68, 132, 64}, {70, 5, 128}, {9, 66, 72}, {3, 40, 200}},
     .large = {{140, 200, 64}, {136, 72, 128}}},
    [](auto& t, int queries, int keys, int head_dim) {
      check_backward(t, {2, 1, queries, keys, head_dim, false});
    },
    kTrainingTypes);

const bool grouped = kernel_test<3>(
    "AttentionBackwardGrouped", {.small = {{4, 1, 64}, {6, 3, 64}, {4, 4, 32}, {8, 2, 128}}},
    [](auto& t, int heads, int kv_heads, int head_dim) {
      check_backward(t, {heads, kv_heads, 40, 40, head_dim, true});
    },
    kTrainingTypes);

// Heads that no configuration but the widest holds: heads that share keys, queries, keys, width,
// causal. Several blocks of both, with stages filled more than once.
const bool wide = kernel_test<5>(
    "AttentionBackwardWide",
    {.small = {{2, 70, 200, 256, true},
               {1, 136, 136, 192, true},
               {2, 33, 65, 160, false},
               {3, 20, 41, 136, true},
               {1, 5, 130, 250, false},
               {1, 0, 70, 256, false}},
     .large = {{2, 260, 260, 256, true}, {4, 133, 300, 250, true}, {1, 300, 141, 136, false}}},
    [](auto& t, int group, int queries, int keys, int head_dim, bool causal) {
      check_backward(t, {2 * group, 2, queries, keys, head_dim, causal});
    },
    kTrainingTypes);

// The first configuration that fits is what runs untuned.
TEST(AttentionBackwardWide, AreMultipliedAsNarrowerHeadsIn_tf32_and_bf16) {
  const auto names = []<class T>(T, auto precision, int head_dim, auto args) {
    args.q = args.dout = batch_of<const T>(nullptr, 2, 200, head_dim);
    args.k = args.v = batch_of<const T>(nullptr, 2, 200, head_dim);
    args.precision = precision;
    std::vector<std::string> found;
    const Kernel& kernel = kernel_registry().get(args.kernel, dtype_of<T>, Target::trace);
    for (const KernelConfig* config : kernel.fitting(&args, 90)) found.push_back(config->name);
    return found;
  };
  const auto check = [&](int head_dim, const auto& wide, const auto& half) {
    for (const std::string& name : names(float{}, DotPrecision::kTf32, head_dim, wide))
      EXPECT_NE(name.find("_tf32"), std::string::npos) << name << ", heads of " << head_dim;
    const auto first = names(bf16{}, DotPrecision::kFp32, head_dim, half).at(0);
    EXPECT_EQ(first.find("hopper_"), 0u) << first << ", heads of " << head_dim;
  };
  for (const int head_dim : {64, 128, 136, 192, 256}) {
    check(head_dim, AttentionBackwardQArgs<float>{}, AttentionBackwardQArgs<bf16>{});
    check(head_dim, AttentionBackwardKvArgs<float>{}, AttentionBackwardKvArgs<bf16>{});
  }
}

const bool turned = kernel_test<3>(
    "AttentionBackwardTurned",
    {.small = {{1, 1, 64}, {0, 0, 64}, {65, 65, 64}, {40, 40, 128}, {5, 70, 128}, {36, 132, 64}},
     .large = {{200, 260, 64}, {132, 132, 128}}},
    [](auto& t, int queries, int keys, int head_dim) {
      check_backward(t, {4, 2, queries, keys, head_dim, true, DotPrecision::kFp32, true});
    },
    kTrainingTypes);

// More blocks than fit at once, into the 132 programs that are traced or a GPU's 264: persistent
// ones compute up to six.
const bool many = kernel_test<1>("AttentionBackwardManyHeads", {.small = {{140}}, .large = {{600}}},
                                 [](auto& t, int heads) {
                                   check_backward(t, {heads, heads, 65, 65, 8, true});
                                 },
                                 {DType::bf16});

// Heads that share keys, queries, keys, causal: several chunks of queries where these are long.
const bool one_pass = kernel_test<4>(
    "AttentionBackwardOnePass",
    {.small = {{1, 1, 1, true},
               {2, 0, 0, true},
               {2, 63, 63, true},
               {1, 5, 70, true},
               {3, 132, 132, true},
               {1, 70, 5, false},
               {4, 20, 150, false}},
     .large = {{2, 300, 300, true},
               {4, 300, 400, true},
               {1, 520, 520, true},
               {3, 132, 132, true},
               {2, 260, 140, false}}},
    [](auto& t, int group, int queries, int keys, bool causal) {
      check_backward(t, {.heads = 2 * group,
                         .kv_heads = 2,
                         .queries = queries,
                         .keys = keys,
                         .head_dim = 64,
                         .causal = causal,
                         .turns = queries <= keys,
                         .one_pass = true});
    },
    kTrainingTypes);

TEST(AttentionBackwardOnePass, FitsWhereSharedMemoryHoldsABlockOfAllHeads) {
  for (const int group : {1, 3, 4, 5, 8}) {
    AttentionBackwardQkvArgs<float> args{};
    args.q = batch_of<const float>(nullptr, 2 * group, 1000, 64);
    args.k = batch_of<const float>(nullptr, 2, 1000, 64);
    // Whole blocks of 128 queries, 512 of all heads: the last chunk sees these keys again.
    const int chunk = 512 / 128 / group * 128, again = chunk > 0 ? 999 / chunk * chunk : 0;
    EXPECT_EQ(args.seen_again(), again) << group;
    args.so_far = batch_of<float>(nullptr, 4, again, 64);
    EXPECT_EQ(suits(kCpu, call_of(args)), group <= 4) << group;
    args.so_far.rows = again - 1;
    EXPECT_FALSE(suits(kCpu, call_of(args))) << group;
  }
}

// More heads than programs at a time, of one block of keys and of several, with queries in two
// chunks; narrow ones.
const bool one_pass_many =
    kernel_test<3>("AttentionBackwardOnePassManyHeads",
                   {.small = {{134, 1, 65}}, .large = {{300, 1, 65}, {140, 2, 270}}},
                   [](auto& t, int kv_heads, int group, int rows) {
                     check_backward(t, {.heads = kv_heads * group,
                                        .kv_heads = kv_heads,
                                        .queries = rows,
                                        .keys = rows,
                                        .head_dim = 8,
                                        .causal = true,
                                        .one_pass = true});
                   },
                   {DType::bf16});

const bool one_pass_tf32 =
    kernel_test<2>("AttentionBackwardOnePassTf32", {.small = {{65, 65}, {40, 130}}},
                   [](auto& t, int queries, int keys) {
                     check_backward(t, {.heads = 2,
                                        .kv_heads = 1,
                                        .queries = queries,
                                        .keys = keys,
                                        .head_dim = 64,
                                        .causal = true,
                                        .precision = DotPrecision::kTf32,
                                        .one_pass = true});
                   },
                   {DType::f32});

// Heads that fill no config's width are refused rather than turned wrongly.
TEST(AttentionBackwardTurned, FitsOnlyWholeHeads) {
  float table[1] = {};
  for (const int head_dim : {32, 63, 64, 96, 128, 192}) {
    AttentionBackwardInputs<float> in{
        .q = {.cols = head_dim}, .k = {}, .v = {}, .dout = {}, .lse = {}};
    in.cos = in.sin = matrix_of<const float>(table, 1, 1);
    const bool whole = head_dim == 64 || head_dim == 128;
    const auto fits = [](const auto& args) {
      return !kernel_registry().get(args.kernel, DType::f32, Target::cpu).fitting(&args, 0).empty();
    };
    EXPECT_EQ(fits(AttentionBackwardQArgs<float>{in, {}, {}, {}}), whole) << head_dim;
    EXPECT_EQ(fits(AttentionBackwardKvArgs<float>{in, {}, {}, {}}), whole) << head_dim;
  }
}

// Scores so far below zero that a key past the end, with score zero, would weigh infinitely much.
const bool low_scores = kernel_test<3>(
    "AttentionBackwardLowScores",
    {.small = {{68, 40, false}, {40, 100, false}, {68, 40, true}, {40, 100, true}}},
    [](auto& t, int queries, int keys, bool one_pass) {
      const Problem p{.heads = 1,
                      .kv_heads = 1,
                      .queries = queries,
                      .keys = keys,
                      .head_dim = 64,
                      .causal = false,
                      .one_pass = one_pass};
      check_backward(t, p, [&](auto& q, auto& k) {
        for (int i = 0; i < queries; ++i) q.set(i, 0, 32);
        for (int j = 0; j < keys; ++j) k.set(j, 0, -64);
      });
    },
    kTrainingTypes);

const bool tf32 =
    kernel_test<3>("AttentionBackwardTf32",
                   {.small = {{65, 65, 64}, {40, 70, 128}, {36, 36, 256}, {70, 135, 192}},
                    .large = {{200, 260, 256}}},
                   [](auto& t, int queries, int keys, int head_dim) {
                     check_backward(t, {2, 1, queries, keys, head_dim, true, DotPrecision::kTf32});
                   },
                   {DType::f32});

// Everything as one product leaves and takes it: heads side by side in the rows of [B * T, (H + 2
// G) K].
const bool packed = kernel_test<2>(
    "AttentionBackwardPacked", {.small = {{40, 64}, {68, 128}, {33, 40}, {21, 35}}},
    [](auto& t, int tokens, int head_dim) {
      using T = ElementOf<decltype(t)>;
      constexpr int batch = 2, heads = 4, kv_heads = 2;
      const Problem p{batch * heads, batch * kv_heads, tokens, tokens, head_dim, true};
      const int width = (heads + 2 * kv_heads) * head_dim, out = heads * head_dim;
      auto& qkv = t.input("qkv", {batch * tokens, width});
      auto& dout = t.input("dout", {batch * tokens, out});
      auto& dqkv = t.output("dqkv", {batch * tokens, width});
      qkv.set_parts(heads + 2 * kv_heads), dqkv.set_parts(heads + 2 * kv_heads);
      dout.set_parts(heads);
      // visit(b, t, column in the packed row) for all elements of some heads, in the reference's
      // order
      const auto each = [&](int first, int count, auto visit) {
        for (int h = 0; h < batch * count; ++h)
          for (int i = 0; i < tokens; ++i)
            for (int e = 0; e < head_dim; ++e)
              visit(h / count * tokens + i, (first + h % count) * head_dim + e);
      };
      const auto unpacked = [&](auto& from, int first, int count) {
        Values x;
        each(first, count, [&](int r, int c) { x.push_back(from(r, c)); });
        return x;
      };
      const Inputs in{unpacked(qkv, 0, heads), unpacked(qkv, heads, kv_heads),
                      unpacked(qkv, heads + kv_heads, kv_heads), unpacked(dout, 0, heads)};
      const auto view = [&](auto* data, int first, int count, int64_t ld) {
        return heads_of(data + first * head_dim, batch, tokens, count, head_dim, ld);
      };
      const Views<T> views{view(qkv.data(), 0, heads, width),
                           view(qkv.data(), heads, kv_heads, width),
                           view(qkv.data(), heads + kv_heads, kv_heads, width),
                           view(dout.data(), 0, heads, out),
                           view(dqkv.data(), 0, heads, width),
                           view(dqkv.data(), heads, kv_heads, width),
                           view(dqkv.data(), heads + kv_heads, kv_heads, width)};
      run_backward(t, p, in, views, [&](const Gradients& g) {
        const auto expect = [&](int first, int count, const Values& want) {
          size_t i = 0;
          each(first, count, [&](int r, int c) { dqkv.want(r, c) = want[i++]; });
        };
        expect(0, heads, g.dq), expect(heads, kv_heads, g.dk),
            expect(heads + kv_heads, kv_heads, g.dv);
        const double norm = std::max({g.dq_norm, g.dk_norm, g.dv_norm});
        dqkv.tolerance = tolerance_of<T>(p, in, norm, p.group() * tokens);
      });
    },
    kTrainingTypes);

}  // namespace
}  // namespace cria::test
