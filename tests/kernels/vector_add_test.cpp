#include "kernels/vector_add.h"

#include "kernels/harness.h"
#include "kernels/launch.h"
#include "tile/trace/analysis.h"

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

// Without naming cria's registry, as on a stream.
TEST(VectorAdd, TraceTakesAConfigByName) {
  const int n = 1000;
  const std::vector<float> x(n, 1.f), y(n, 2.f);
  std::vector<float> z(n);
  const VectorAddArgs<float> args{
      .x = vector_of(x.data(), n), .y = vector_of(y.data(), n), .z = vector_of(z.data(), n)};
  tile::Trace trace;
  launch(trace, args, "block1024_threads128");
  EXPECT_EQ(z, std::vector<float>(n, 3.f));
  EXPECT_THROW(launch(trace, args, "block3_threads1"), Error);
}

}  // namespace
}  // namespace cria::test
