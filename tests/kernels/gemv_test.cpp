#include "kernels/gemv.h"

#include <cmath>

#include "kernels/harness.h"

namespace cria::test {
namespace {

using namespace kernels;

// sizes: rows of x, rows of w, columns of both
template <class Case>
void check(Case& t, int m, int n, int k, bool residual) {
  auto &x = t.input("x", {m, k}), &w = t.input("w", {n, k});
  auto& added = t.input("residual", {residual ? m : 0, n});
  auto& y = t.output("y", {m, n});
  double most = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double terms = residual ? std::abs(added(i, j)) : 0;
      y.want(i, j) = residual ? added(i, j) : 0;
      for (int c = 0; c < k; ++c)
        y.want(i, j) += x(i, c) * w(j, c), terms += std::abs(x(i, c) * w(j, c));
      most = std::max(most, terms);
    }
  y.tolerance = {.length = k + 1, .norm = most};
  GemvArgs<ElementOf<Case>> args{.x = x, .w = w, .y = y};
  if (residual) args.residual = added;
  t.run(args);
}

const bool plain = kernel_test<3>(
    "Gemv",
    {.small = {{0, 3, 4},
               {1, 0, 4},
               {1, 1, 1},
               {1, 3, 127},
               {1, 8, 128},
               {1, 9, 129},
               {2, 17, 257},
               {3, 5, 64},
               {5, 12, 512},
               {8, 9, 300}},
     .large = {{1, 300, 2048}, {8, 100, 1000}}},
    [](auto& t, int m, int n, int k) { check(t, m, n, k, false); }, kTrainingTypes);
const bool with_residual = kernel_test<3>(
    "GemvResidual", {.small = {{1, 9, 130}, {3, 8, 64}}, .large = {{7, 50, 700}}},
    [](auto& t, int m, int n, int k) { check(t, m, n, k, true); }, kTrainingTypes);

const bool in_place = kernel_test<2>(
    "GemvAddsToItself", {.small = {{17, 257}}},
    [](auto& t, int n, int k) {
      auto &x = t.input("x", {1, k}), &w = t.input("w", {n, k}), &y = t.inout("y", {1, n});
      for (int j = 0; j < n; ++j) {
        y.want(0, j) = y(0, j);
        for (int c = 0; c < k; ++c) y.want(0, j) += x(0, c) * w(j, c);
      }
      y.tolerance = {.length = k + 1, .norm = double(k)};
      t.run(GemvArgs<ElementOf<decltype(t)>>{.x = x, .w = w, .y = y, .residual = y});
    },
    kTrainingTypes);

TEST(Gemv, ManyRowsAreRefused) {
  float x[9] = {}, w[1] = {}, y[9] = {};
  const GemvArgs<float> args{.x = matrix_of<const float>(x, 9, 1),
                             .w = matrix_of<const float>(w, 1, 1),
                             .y = matrix_of(y, 9, 1)};
  Stream stream(kCpu);
  EXPECT_THROW(launch(stream, args), Error);
}

}  // namespace
}  // namespace cria::test
