#include "kernels/gate_up_backward.h"

#include <cmath>

#include "kernels/harness.h"
#include "kernels/products.h"

namespace cria::test {
namespace {

using namespace kernels;

enum class Memory { apart, in_place };

// dact = dy down, times the derivatives by gate and by up, which are the halves of one buffer's
// rows; in place, the gradients come to lie over them.
void check(auto& t, int m, int f, int d, Memory memory,
           DotPrecision precision = DotPrecision::kFp32) {
  using T = ElementOf<decltype(t)>;
  const bool in_place = memory == Memory::in_place;
  auto &dy = t.input("dy", {m, d}), &down = t.input("down", {d, f}, 0.3);
  auto& by = in_place ? t.inout("by", {m, 2 * f}, 2) : t.input("by", {m, 2 * f}, 2);
  auto& gradients = in_place ? by : t.output("gradients", {m, 2 * f});
  const Products product = products_of(
      m, f, d, [&](int i, int k) { return dy(i, k); }, [&](int k, int j) { return down(k, j); });
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < f; ++j) {
      const double dact = product.sum(i, j);  // rounded before it is multiplied
      const double error =
          product_error<T>(d, product.size(i, j), precision) + rounding_error<T>(dact);
      for (const int column : {j, f + j}) {
        gradients.want(i, column) = dact * by(i, column);
        gradients.error(i, column) = error * std::abs(by(i, column));
      }
    }
  by.set_parts(2), gradients.set_parts(2);
  const auto half = [&](auto& both, int column) {
    return matrix_of<T>(both.data() + column, m, f, 2 * f);
  };
  t.run(GateUpBackwardArgs<T>{.dy = dy,
                              .down = down,
                              .by_gate = half(by, 0),
                              .by_up = half(by, f),
                              .dgate = half(gradients, 0),
                              .dup = half(gradients, f),
                              .precision = precision});
}

const Sizes<3> kSizes = {.small = {{1, 1, 1},
                                   {0, 3, 4},
                                   {5, 7, 0},
                                   {64, 64, 64},
                                   {65, 67, 41},
                                   {65, 72, 40},
                                   {130, 136, 136},
                                   {40, 264, 8}},
                         .large = {{300, 264, 200}, {257, 520, 72}},
                         .many_tiles = {{8136, 888, 72}}};

const bool apart = kernel_test<3>(
    "GateUpBackward", kSizes,
    [](auto& t, int m, int f, int d) { check(t, m, f, d, Memory::apart); }, kTrainingTypes);
const bool in_place = kernel_test<3>(
    "GateUpBackwardInPlace", kSizes,
    [](auto& t, int m, int f, int d) { check(t, m, f, d, Memory::in_place); }, kTrainingTypes);
const bool tf32 = kernel_test<3>(
    "GateUpBackwardTf32", {.small = {{65, 70, 40}, {128, 72, 136}}},
    [](auto& t, int m, int f, int d) { check(t, m, f, d, Memory::apart, DotPrecision::kTf32); },
    {DType::f32});

}  // namespace
}  // namespace cria::test
