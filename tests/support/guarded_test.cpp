#include "support/guarded.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/dtype.h"

namespace cria::test {
namespace {

TEST(Guarded, StartsPoisonedAndClean) {
  Guarded<f16> x(5);
  EXPECT_EQ(x.size(), 5u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(x.data()) % kGuardBytes, 0u);
  for (const f16 v : x) EXPECT_TRUE(std::isnan(to_float(v)));
  x.check("x");
}

TEST(Guarded, SeesOneByteOnEitherSide) {
  static Guarded<float> x(3);
  const std::byte saved = x.image()[kGuardBytes - 1];
  x.image()[kGuardBytes - 1] = std::byte{0};
  EXPECT_NONFATAL_FAILURE(x.check("x"), "x: written 1 bytes before its start");
  x.image()[kGuardBytes - 1] = saved;
  x.image()[kGuardBytes + 3 * sizeof(float) + 2] = std::byte{0};
  EXPECT_NONFATAL_FAILURE(x.check("x"), "x: written 2 bytes past its end");
}

TEST(Guarded, HoldsValues) {
  const std::vector<float> values = {1, 2, 3};
  const Guarded<float> x{std::span<const float>(values)};
  EXPECT_EQ(std::vector<float>(x.begin(), x.end()), values);
  x.check("x");
}

TEST(Guarded, MayBeEmpty) {
  const Guarded<float> x(size_t{0});
  EXPECT_EQ(x.begin(), x.end());
  x.check("x");
}

}  // namespace
}  // namespace cria::test
