#include "kernels/rmsnorm.h"

#include <algorithm>
#include <cmath>

#include "kernels/harness.h"
#include "kernels/reduction.h"
#include "kernels/rmsnorm_backward.h"
#include "support/differences.h"

namespace cria::test {
namespace {

using namespace kernels;

constexpr float kEps = 1e-5f;

// 1 / sqrt(mean(x²) + eps) of one row; x(j) is its element j.
template <class X>
double inverse_rms(int cols, X x) {
  double squares = 0;
  for (int j = 0; j < cols; ++j) squares += x(j) * x(j);
  return 1 / std::sqrt(squares / cols + kEps);
}

std::vector<std::array<int, 2>> small_sizes() {
  auto sizes = cross({0, 1, 17, 65}, {0, 1, 3, 63, 64, 65, 128, 129, 255, 256, 257});
  for (const int cols : {1023, 1024, 1025, 2049, 4095, 4096, 4097, 8191, 8192, 8193})
    sizes.push_back({2, cols});
  return sizes;
}
const Sizes<2> kSizes = {.small = small_sizes(), .large = {{3, 20001}, {200, 1000}, {1000, 100}}};

const bool forward = kernel_test<2>("RmsNormForward", kSizes, [](auto& t, int rows, int cols) {
  auto &x = t.input("x", {rows, cols}), &w = t.input("w", {cols}), &y = t.output("y", {rows, cols});
  for (int i = 0; i < rows; ++i) {
    const double r = inverse_rms(cols, [&](int j) { return x(i, j); });
    for (int j = 0; j < cols; ++j) y.want(i, j) = x(i, j) * r * w(0, j);
  }
  y.tolerance = {.length = cols};
  t.run(RmsNormForwardArgs<ElementOf<decltype(t)>>{.x = x, .w = w, .y = y, .eps = kEps});
});

// In place, and with r saved.
const bool saving = kernel_test<2>("RmsNormForwardSaving", kSizes, [](auto& t, int rows, int cols) {
  auto &x = t.inout("x", {rows, cols}), &w = t.input("w", {cols});
  auto& r = t.fp32_output("r", {rows, cols > 0 ? 1 : 0});
  for (int i = 0; i < rows && cols > 0; ++i) {
    r.want(i, 0) = inverse_rms(cols, [&](int j) { return x(i, j); });
    for (int j = 0; j < cols; ++j) x.want(i, j) = x(i, j) * r.want(i, 0) * w(0, j);
  }
  x.tolerance = r.tolerance = {.length = cols};
  t.run(RmsNormForwardArgs<ElementOf<decltype(t)>>{.x = x, .w = w, .y = x, .r = r, .eps = kEps});
});

// h = x + residual in the place of residual, rounded before it is normalised.
const bool add_forward = kernel_test<
    2>("AddRmsNormForward", kSizes, [](auto& t, int rows, int cols) {
  using T = ElementOf<decltype(t)>;
  auto &x = t.input("x", {rows, cols}), &h = t.inout("h", {rows, cols}), &w = t.input("w", {cols});
  auto& y = t.output("y", {rows, cols});
  auto& r = t.fp32_output("r", {rows, cols > 0 ? 1 : 0});
  for (int i = 0; i < rows && cols > 0; ++i) {
    for (int j = 0; j < cols; ++j)
      h.want(i, j) = to_float(from_float<T>(static_cast<float>(x(i, j) + h(i, j))));
    r.want(i, 0) = inverse_rms(cols, [&](int j) { return h.want(i, j); });
    for (int j = 0; j < cols; ++j) y.want(i, j) = h.want(i, j) * r.want(i, 0) * w(0, j);
  }
  y.tolerance = r.tolerance = {.length = cols};
  t.run(
      AddRmsNormForwardArgs<T>{.x = x, .residual = h, .w = w, .h = h, .y = y, .r = r, .eps = kEps});
});

// Without r, with operands of their own.
const bool add_forward_apart = kernel_test<2>(
    "AddRmsNormForwardApart", {.small = {{1, 5}, {33, 100}, {2, 2000}, {2, 9000}}},
    [](auto& t, int rows, int cols) {
      using T = ElementOf<decltype(t)>;
      auto &x = t.input("x", {rows, cols}), &residual = t.input("residual", {rows, cols});
      auto &w = t.input("w", {cols}), &h = t.output("h", {rows, cols}),
           &y = t.output("y", {rows, cols});
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < cols; ++j)
          h.want(i, j) = to_float(from_float<T>(static_cast<float>(x(i, j) + residual(i, j))));
        const double r = inverse_rms(cols, [&](int j) { return h.want(i, j); });
        for (int j = 0; j < cols; ++j) y.want(i, j) = h.want(i, j) * r * w(0, j);
      }
      y.tolerance = {.length = cols};
      t.run(AddRmsNormForwardArgs<T>{
          .x = x, .residual = residual, .w = w, .h = h, .y = y, .eps = kEps});
    });

// dx = r g - x r³ mean(g x) with g = dy w.
template <class X, class G>
void rmsnorm_dx(int cols, double r, X x, G g, std::vector<double>& dx, double& magnitude) {
  double dot = 0, terms = 0;
  for (int j = 0; j < cols; ++j) dot += g(j) * x(j), terms += std::abs(g(j) * x(j));
  for (int j = 0; j < cols; ++j) {
    dx[j] = r * g(j) - x(j) * r * r * r * dot / cols;
    magnitude = std::max(magnitude, std::abs(r * g(j)) + std::abs(x(j) * r * r * r * terms / cols));
  }
}

// What else reaches x: nothing, a gradient of its own, or one that dx already holds. kOverDy: one
// of its own, and dx takes the place of dy.
enum class Residual { kNone, kAdded, kInPlace, kOverDy };

template <Residual Path, class Case>
void check_backward(Case& t, int rows, int cols, int shares) {
  using T = ElementOf<Case>;
  constexpr bool over_dy = Path == Residual::kOverDy;
  auto &x = t.input("x", {rows, cols}), &w = t.input("w", {cols});
  auto& dy = over_dy ? t.inout("dy", {rows, cols}) : t.input("dy", {rows, cols});
  auto& r = t.fp32_input("r", {rows, cols > 0 ? 1 : 0});
  auto& dx = over_dy                      ? dy
             : Path == Residual::kInPlace ? t.inout("dx", {rows, cols})
                                          : t.output("dx", {rows, cols});
  const bool adds = Path == Residual::kAdded || over_dy;
  Operand<T>* add = adds ? &t.input("add", {rows, cols}) : nullptr;
  const bool again = adds && !std::is_same_v<T, f16>;
  Operand<T>* y = again ? &t.output("y", {rows, cols}) : nullptr;
  auto& partials = t.fp32_scratch("partials", {shares, cols});
  auto& dw = t.output("dw", {cols});
  std::vector<double> row(cols), magnitude(cols);
  double largest = 0;
  for (int i = 0; i < rows && cols > 0; ++i) {
    r.set(i, 0, inverse_rms(cols, [&](int j) { return x(i, j); }));
    rmsnorm_dx(
        cols, r(i, 0), [&](int j) { return x(i, j); }, [&](int j) { return dy(i, j) * w(0, j); },
        row, largest);
    for (int j = 0; j < cols; ++j) {
      dx.want(i, j) = row[j] + (add ? (*add)(i, j) : Path == Residual::kInPlace ? dx(i, j) : 0);
      if (y) y->want(i, j) = x(i, j) * r(i, 0) * w(0, j);
      dw.want(0, j) += dy(i, j) * x(i, j) * r(i, 0);
      magnitude[j] += std::abs(dy(i, j) * x(i, j) * r(i, 0));
    }
  }
  dx.tolerance = {.length = cols, .norm = largest};
  dw.tolerance = {.length = rows,
                  .norm = cols > 0 ? *std::max_element(magnitude.begin(), magnitude.end()) : 0};
  RmsNormBackwardArgs<T> args{.x = x, .w = w, .r = r, .dy = dy, .dx = dx, .partials = partials};
  if (add) args.add = *add;
  if (y) args.y = *y, y->tolerance = {.length = 2};
  if (Path == Residual::kInPlace) args.add = dx;
  t.run(args, ColumnSumArgs<T>{.x = partials, .y = dw});
}

// Rows, columns, shares: fewer than rows, as many, more.
const Sizes<3> kBackwardSizes = {
    .small = {{0, 0, 2},    {0, 5, 2},    {1, 1, 1},    {1, 3, 4},    {17, 64, 3},  {65, 65, 1},
              {129, 63, 2}, {70, 128, 2}, {33, 129, 2}, {33, 256, 2}, {40, 255, 1}, {5, 257, 2},
              {5, 1023, 2}, {5, 1024, 3}, {4, 1025, 2}, {4, 2049, 2}, {4, 4095, 2}, {4, 4096, 2},
              {4, 4097, 4}, {3, 8191, 2}, {3, 8192, 2}, {3, 8193, 2}, {3, 17000, 2}},
    .large = {{500, 1000, 8}, {1000, 100, 4}}};
// One for each way through the kernel.
const Sizes<3> kResidualSizes = {
    .small = {{0, 5, 2}, {1, 3, 4}, {33, 129, 2}, {5, 1023, 2}, {4, 4096, 2}, {3, 8193, 2}}};

const bool backward =
    kernel_test<3>("RmsNormBackward", kBackwardSizes, [](auto& t, int rows, int cols, int shares) {
      check_backward<Residual::kNone>(t, rows, cols, shares);
    });
const bool backward_added = kernel_test<3>(
    "RmsNormBackwardAdded", kResidualSizes, [](auto& t, int rows, int cols, int shares) {
      check_backward<Residual::kAdded>(t, rows, cols, shares);
    });
const bool backward_in_place = kernel_test<3>(
    "RmsNormBackwardInPlace", kResidualSizes, [](auto& t, int rows, int cols, int shares) {
      check_backward<Residual::kInPlace>(t, rows, cols, shares);
    });

const bool over_dy = kernel_test<3>("RmsNormBackwardOverDy",
                                    {.small = {{17, 64, 3},
                                               {33, 256, 2},
                                               {5, 512, 2},
                                               {5, 1024, 3},
                                               {4, 2049, 2},
                                               {4, 4096, 2},
                                               {3, 8193, 2}}},
                                    [](auto& t, int rows, int cols, int shares) {
                                      check_backward<Residual::kOverDy>(t, rows, cols, shares);
                                    });

TEST(RmsNormBackward, ReferenceIsTheDerivative) {
  const std::vector<double> x = {0.5, -1, 2, 0.1}, w = {1, 2, -0.5, 3}, dy = {0.3, -2, 1, 0.7};
  const int n = 4;
  auto loss = [&](const std::vector<double>& v) {  // v: x, then w
    const double r = inverse_rms(n, [&](int j) { return v[j]; });
    double sum = 0;
    for (int j = 0; j < n; ++j) sum += dy[j] * v[j] * r * v[n + j];
    return sum;
  };
  const double r = inverse_rms(n, [&](int j) { return x[j]; });
  std::vector<double> both = x, gradient(n);
  both.insert(both.end(), w.begin(), w.end());
  double unused = 0;
  rmsnorm_dx(
      n, r, [&](int j) { return x[j]; }, [&](int j) { return dy[j] * w[j]; }, gradient, unused);
  for (int j = 0; j < n; ++j) gradient.push_back(dy[j] * x[j] * r);
  expect_gradient(both, gradient, loss, "x, w");
}

}  // namespace
}  // namespace cria::test
