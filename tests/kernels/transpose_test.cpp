#include "kernels/transpose.h"

#include "kernels/harness.h"

namespace cria::test {
namespace {

using namespace kernels;

const Sizes<2> kSizes = {
    .small = cross({0, 1, 31, 32, 33, 64, 65, 129}, {0, 1, 31, 33, 63, 64, 65, 127}),
    .large = {{3, 2000}, {2000, 3}, {517, 1031}}};

template <template <class> class Args, class Case>
void check_transpose(Case& t, int rows, int cols) {
  auto &x = t.input("x", {rows, cols}), &y = t.output("y", {cols, rows});
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) y.want(j, i) = x(i, j);
  t.run(Args<ElementOf<Case>>{.x = x, .y = y});
}

const bool row_wise = kernel_test<2>("TransposeRowWise", kSizes, [](auto& t, int rows, int cols) {
  check_transpose<TransposeRowWiseArgs>(t, rows, cols);
});
const bool coalesced_loads =
    kernel_test<2>("TransposeCoalescedLoads", kSizes, [](auto& t, int rows, int cols) {
      check_transpose<TransposeCoalescedLoadsArgs>(t, rows, cols);
    });
const bool tiled = kernel_test<2>("TransposeTiled", kSizes, [](auto& t, int rows, int cols) {
  check_transpose<TransposeTiledArgs>(t, rows, cols);
});
const bool padded = kernel_test<2>("TransposePadded", kSizes, [](auto& t, int rows, int cols) {
  check_transpose<TransposePaddedArgs>(t, rows, cols);
});

}  // namespace
}  // namespace cria::test
