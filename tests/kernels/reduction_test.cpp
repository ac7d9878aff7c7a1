#include "kernels/reduction.h"

#include <cmath>

#include "kernels/harness.h"

namespace cria::test {
namespace {

using namespace kernels;

// sizes: elements, shares
const bool sum = kernel_test<2>("Sum",
                                {.small = cross({0, 1, 2047, 2048, 2049, 8191, 8193}, {1, 3, 8}),
                                 .large = {{100003, 16}, {300000, 7}}},
                                [](auto& t, int n, int shares) {
                                  auto& x = t.input("x", {n});
                                  auto& partials = t.fp32_scratch("partials", {shares});
                                  auto& signal =
                                      t.i32_input("signal", {1});  // zero, and the same afterwards
                                  auto& out = t.fp32_output("out", {1});
                                  double magnitude = 0;
                                  for (int i = 0; i < n; ++i)
                                    out.want(0, 0) += x(0, i), magnitude += std::abs(x(0, i));
                                  out.tolerance = {.length = n, .norm = magnitude};
                                  t.run(SumArgs<ElementOf<decltype(t)>>{
                                      .x = x, .partials = partials, .signal = signal, .out = out});
                                });

const bool sum_squares = kernel_test<2>(
    "SumSquares",
    {.small = cross({0, 1, 2049, 8193}, {1, 3, 8}), .large = {{100003, 16}, {300000, 7}}},
    [](auto& t, int n, int shares) {
      auto& x = t.input("x", {n});
      auto& partials = t.fp32_scratch("partials", {shares});
      auto& signal = t.i32_input("signal", {1});  // zero, and the same afterwards
      auto& out = t.fp32_output("out", {1});
      for (int i = 0; i < n; ++i) out.want(0, 0) += x(0, i) * x(0, i);
      out.tolerance = {.length = n};
      t.run(SumSquaresArgs<ElementOf<decltype(t)>>{
          .x = x, .partials = partials, .signal = signal, .out = out});
    });

const bool column_sum = kernel_test<2>(
    "ColumnSum", {.small = cross({0, 1, 63, 65, 129}, {1, 31, 32, 33, 65}), .large = {{528, 1000}}},
    [](auto& t, int rows, int cols) {
      auto& x = t.fp32_input("x", {rows, cols});
      auto& y = t.output("y", {cols});
      double magnitude = 0;
      for (int j = 0; j < cols; ++j) {
        double terms = 0;
        for (int i = 0; i < rows; ++i) y.want(0, j) += x(i, j), terms += std::abs(x(i, j));
        magnitude = std::max(magnitude, terms);
      }
      y.tolerance = {.length = rows, .norm = magnitude};
      t.run(ColumnSumArgs<ElementOf<decltype(t)>>{.x = x, .y = y});
    });

}  // namespace
}  // namespace cria::test
