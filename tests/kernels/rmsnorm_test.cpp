#include "kernels/rmsnorm.h"

#include <cmath>

#include "kernels/harness.h"

namespace cria::test {
namespace {

using namespace kernels;

constexpr float kEps = 1e-5f;

// y = x r w with r = 1 / sqrt(mean(x²) + eps).
const bool forward = kernel_test<2>(
    "RmsNormForward",
    {.small = cross({0, 1, 2, 17}, {0, 1, 3, 63, 64, 65, 255, 256, 257}), .large = {{3, 4099}}},
    [](auto& t, int rows, int cols) {
      auto& x = t.input("x", {rows, cols});
      auto& w = t.input("w", {cols});
      auto& y = t.output("y", {rows, cols});
      for (int i = 0; i < rows; ++i) {
        double squares = 0;
        for (int j = 0; j < cols; ++j) squares += x(i, j) * x(i, j);
        const double r = 1 / std::sqrt(squares / cols + kEps);
        for (int j = 0; j < cols; ++j) y.want(i, j) = x(i, j) * r * w(0, j);
      }
      y.tolerance = {.length = cols};
      t.run(RmsNormForwardArgs<ElementOf<decltype(t)>>{.x = x, .w = w, .y = y, .eps = kEps});
    });

}  // namespace
}  // namespace cria::test
