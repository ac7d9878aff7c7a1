#include "kernels/vector_add.h"

#include "kernels/harness.h"

namespace cria::test {
namespace {

using namespace kernels;

const bool out_of_place =
    kernel_test<1>("VectorAdd",
                   {.small = each({0, 1, 31, 1023, 1024, 1025, 2047, 2048, 2049, 8191, 8193}),
                    .large = each({100003})},
                   [](auto& t, int n) {
                     auto &x = t.input("x", {n}), &y = t.input("y", {n}), &z = t.output("z", {n});
                     for (int i = 0; i < n; ++i) z.want(0, i) = x(0, i) + y(0, i);
                     t.run(VectorAddArgs<ElementOf<decltype(t)>>{.x = x, .y = y, .z = z});
                   });

const bool in_place =
    kernel_test<1>("VectorAddInPlace", {.small = each({1, 2049})}, [](auto& t, int n) {
      auto &x = t.inout("x", {n}), &y = t.input("y", {n});
      for (int i = 0; i < n; ++i) x.want(0, i) = x(0, i) + y(0, i);
      t.run(VectorAddArgs<ElementOf<decltype(t)>>{.x = x, .y = y, .z = x});
    });

}  // namespace
}  // namespace cria::test
