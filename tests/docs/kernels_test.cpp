// The kernels that docs/tile.md quotes compute what the page says.
#include "docs/kernels.h"

#include <cmath>

#include "cria_tests_kernels.h"
#include "kernels/harness.h"

namespace cria::test {
namespace {

using namespace docs;

// Registers a test of a quoted kernel.
template <int N, class Body>
bool doc_test(const char* name, Sizes<N> sizes, Body body) {
  return kernel_test<N>(name, std::move(sizes),
                        [body](auto& t, auto... n) {
                          t.use(cria_tests_kernels());
                          body(t, n...);
                        },
                        {DType::f32, DType::bf16});
}

const bool vector_add = doc_test<1>(
    "DocVectorAdd", {.small = each({0, 1, 1023, 1024, 1025, 9999})}, [](auto& t, int n) {
      auto &x = t.input("x", {n}), &y = t.input("y", {n}), &z = t.output("z", {n});
      for (int i = 0; i < n; ++i) z.want(0, i) = x(0, i) + y(0, i);
      t.run(VectorAddArgs<ElementOf<decltype(t)>>{.x = x, .y = y, .z = z});
    });

// Of row i, over its first `count` columns; the others are 0.
template <class In, class Out>
void want_softmax(const In& x, Out& y, int i, int count, int cols) {
  double total = 0;
  for (int j = 0; j < count; ++j) total += std::exp(x(i, j));
  for (int j = 0; j < cols; ++j) y.want(i, j) = j < count ? std::exp(x(i, j)) / total : 0;
  y.tolerance = {.length = count};
}

const bool softmax =
    doc_test<2>("DocSoftmax", {.small = cross({0, 1, 5}, {1, 127, 1024, 1025, 4096})},
                [](auto& t, int rows, int cols) {
                  auto &x = t.input("x", {rows, cols}), &y = t.output("y", {rows, cols});
                  for (int i = 0; i < rows; ++i) want_softmax(x, y, i, cols, cols);
                  t.run(SoftmaxArgs<ElementOf<decltype(t)>>{.x = x, .y = y});
                });

const bool causal_softmax =
    doc_test<1>("DocCausalSoftmax", {.small = each({1, 7, 8, 9, 127, 128})}, [](auto& t, int n) {
      auto &x = t.input("x", {n, n}), &y = t.output("y", {n, n});
      for (int i = 0; i < n; ++i) want_softmax(x, y, i, i + 1, n);
      CausalSoftmaxArgs<ElementOf<decltype(t)>> args;
      args.x = x, args.y = y;
      t.run(args);
    });

const bool transpose =
    doc_test<2>("DocTranspose", {.small = cross({1, 31, 32, 100}, {1, 33, 64})},
                [](auto& t, int rows, int cols) {
                  auto &x = t.input("x", {rows, cols}), &y = t.output("y", {cols, rows});
                  for (int r = 0; r < rows; ++r)
                    for (int c = 0; c < cols; ++c) y.want(c, r) = x(r, c);
                  t.run(TransposeArgs<ElementOf<decltype(t)>>{.x = x, .y = y});
                });

const bool bias = doc_test<2>("DocBias", {.small = cross({0, 1, 16, 40}, {1, 63, 64, 100})},
                              [](auto& t, int rows, int cols) {
                                auto &x = t.input("x", {rows, cols}), &b = t.input("bias", {cols});
                                auto& y = t.output("y", {rows, cols});
                                for (int r = 0; r < rows; ++r)
                                  for (int c = 0; c < cols; ++c) {
                                    const double h = x(r, c) + b(0, c);
                                    y.want(r, c) = h > 0 ? h : 0.1 * h;
                                  }
                                y.tolerance = {.norm = 4};
                                t.run(BiasArgs<ElementOf<decltype(t)>>{.x = x, .bias = b, .y = y});
                              });

const bool gelu = doc_test<1>("DocGelu", {.small = each({1, 1023, 1025})}, [](auto& t, int n) {
  auto &x = t.input("x", {n}), &y = t.output("y", {n});
  for (int i = 0; i < n; ++i) {
    const double v = x(0, i);
    y.want(0, i) = 0.5 * v * (1 + std::tanh(0.79788456 * (v + 0.044715 * v * v * v)));
  }
  y.tolerance = {.norm = 4};
  GeluArgs<ElementOf<decltype(t)>> args;
  args.x = x, args.y = y;
  t.run(args);
});

const bool copy = doc_test<1>("DocCopy", {.small = each({1, 1023, 1025})}, [](auto& t, int n) {
  auto &x = t.input("x", {n}), &y = t.output("y", {n});
  for (int i = 0; i < n; ++i) y.want(0, i) = x(0, i);
  CopyArgs<ElementOf<decltype(t)>> args;
  args.x = x, args.y = y;
  t.run(args);
});

const bool gemm = doc_test<3>(
    "DocGemm", {.small = {{1, 1, 1}, {64, 64, 64}, {65, 72, 200}, {130, 40, 33}}},
    [](auto& t, int m, int n, int k) {
      auto &a = t.input("a", {m, k}), &b = t.input("b", {k, n}), &c = t.output("c", {m, n});
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          double sum = 0;
          for (int l = 0; l < k; ++l) sum += a(i, l) * b(l, j);
          c.want(i, j) = sum;
        }
      c.tolerance = {.length = k, .norm = 2.0 * k};
      t.run(GemmArgs<ElementOf<decltype(t)>>{.a = a, .b = b, .c = c});
    });

const bool attention = doc_test<3>(
    "DocAttention", {.small = {{1, 1, 1}, {2, 64, 64}, {3, 65, 130}, {2, 10, 200}}},
    [](auto& t, int heads, int queries, int keys) {
      constexpr int kDim = 64;
      auto &q = t.input("q", {heads, queries, kDim}), &k = t.input("k", {heads, keys, kDim});
      auto &v = t.input("v", {heads, keys, kDim}), &o = t.output("o", {heads, queries, kDim});
      for (int h = 0; h < heads; ++h)
        for (int i = 0; i < queries; ++i) {
          std::vector<double> weight(keys);
          double total = 0;
          for (int j = 0; j < keys; ++j) {
            double score = 0;
            for (int d = 0; d < kDim; ++d) score += q(h, i, d) * k(h, j, d);
            total += weight[j] = std::exp(0.125 * score);
          }
          for (int d = 0; d < kDim; ++d) {
            double sum = 0;
            for (int j = 0; j < keys; ++j) sum += weight[j] / total * v(h, j, d);
            o.want(h, i, d) = sum;
          }
        }
      using T = ElementOf<decltype(t)>;
      o.tolerance = {.length = keys + kDim, .norm = 4, .inner = roundoff(dtype_of<T>)};
      t.run(AttentionArgs<T>{.q = q, .k = k, .v = v, .o = o, .scale = 0.125f});
    });

const bool normalize = doc_test<1>(
    "DocNormalize", {.small = each({1, 1000, 1024, 1025, 5000, 300000})}, [](auto& t, int n) {
      using Args = NormalizeArgs<ElementOf<decltype(t)>>;
      auto &x = t.input("x", {n}), &y = t.output("y", {n});
      auto& peaks = t.fp32_scratch("peaks", {ceil_div(n, Args::block)});
      double peak = 0;
      for (int i = 0; i < n; ++i) peak = std::max(peak, std::abs(x(0, i)));
      for (int i = 0; i < n; ++i) y.want(0, i) = x(0, i) / peak;
      t.run(Args{.x = x, .peaks = peaks, .y = y});
    });

}  // namespace
}  // namespace cria::test
