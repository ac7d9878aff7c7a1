#include "kernels/pointwise.h"

#include "kernels/harness.h"

namespace cria::test {
namespace {

using namespace kernels;

const Sizes<2> kSizes = {.small = {{0, 5}, {3, 0}, {1, 1}, {1, 2049}, {5, 1023}, {3, 4097}},
                         .large = {{60, 3001}}};

const bool multiply = kernel_test<2>(
    "Multiply", kSizes,
    [](auto& t, int rows, int cols) {
      auto &x = t.input("x", {rows, cols}), &y = t.input("y", {rows, cols});
      auto& z = t.output("z", {rows, cols});
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) z.want(r, c) = x(r, c) * y(r, c);
      t.run(MultiplyArgs<ElementOf<decltype(t)>>{.x = x, .y = y, .z = z});
    },
    kTrainingTypes);

const bool scale = kernel_test<2>(
    "Scale", kSizes,
    [](auto& t, int rows, int cols) {
      auto& x = t.inout("x", {rows, cols});
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) x.want(r, c) = -0.3f * x(r, c);
      t.run(ScaleArgs<ElementOf<decltype(t)>>{.x = x, .y = x, .factor = -0.3f});
    },
    kTrainingTypes);

// sizes: batch, rows, columns
const bool causal_mask = kernel_test<3>(
    "CausalMask", {.small = {{0, 3, 3}, {1, 1, 1}, {2, 5, 5}, {3, 4, 9}, {1, 1, 7}, {2, 300, 301}}},
    [](auto& t, int batch, int rows, int cols) {
      using Args = CausalMaskArgs<ElementOf<decltype(t)>>;
      auto& x = t.inout("x", {batch, rows, cols});
      for (int b = 0; b < batch; ++b)
        for (int r = 0; r < rows; ++r)
          for (int c = 0; c < cols; ++c)
            x.want(b, r, c) = c > r + cols - rows ? Args::lowest : x(b, r, c);
      t.run(Args{.x = x});
    },
    kTrainingTypes);

// sizes: batch, rows, heads, columns; into rows and out of them
template <class Case>
void check_heads(Case& t, int batch, int rows, int heads, int cols, bool out) {
  using T = ElementOf<Case>;
  auto& x =
      out ? t.input("x", {batch, rows, heads * cols}) : t.input("x", {batch * heads, rows, cols});
  auto& y =
      out ? t.output("y", {batch * heads, rows, cols}) : t.output("y", {batch, rows, heads * cols});
  for (int b = 0; b < batch; ++b)
    for (int h = 0; h < heads; ++h)
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) {
          const int head = b * heads + h, col = h * cols + c;
          if (out)
            y.want(head, r, c) = x(b, r, col);
          else
            y.want(b, r, col) = x(head, r, c);
        }
  const int width = heads * cols;
  CopyHeadsArgs<T> args{.x = x, .y = y};
  (out ? static_cast<OperandBase&>(x) : y).set_parts(heads);
  if (out)
    args.x = heads_of<const T>(x.data(), batch, rows, heads, cols, width);
  else
    args.y = heads_of(y.data(), batch, rows, heads, cols, width);
  t.run(args);
}
const Sizes<4> kHeads = {
    .small = {{1, 1, 1, 1}, {2, 3, 4, 8}, {1, 33, 2, 64}, {2, 17, 3, 129}, {1, 5, 2, 40}},
    .large = {{2, 300, 5, 64}}};
const bool copy_heads_out = kernel_test<4>(
    "CopyHeadsOutOfRows", kHeads,
    [](auto& t, int b, int r, int h, int c) { check_heads(t, b, r, h, c, true); }, kTrainingTypes);
const bool copy_heads_in = kernel_test<4>(
    "CopyHeadsIntoRows", kHeads,
    [](auto& t, int b, int r, int h, int c) { check_heads(t, b, r, h, c, false); }, kTrainingTypes);

}  // namespace
}  // namespace cria::test
