#include "base/dims.h"

#include <gtest/gtest.h>

namespace cria {
namespace {

TEST(ShapeClass, RoundsUpToPowersOfTwo) {
  EXPECT_EQ(shape_class({{"m", 3}, {"n", 64}, {"k", 65}}), "m<=4 n<=64 k<=128");
  EXPECT_EQ(shape_class({}), "");
}

TEST(ShapeClass, TellsASwitchThatIsOffFromOneThatIsOn) {
  EXPECT_EQ(shape_class({{"causal", 0}}), "causal<=0");
  EXPECT_EQ(shape_class({{"causal", 1}}), "causal<=1");
  EXPECT_EQ(shape_class({{"causal", 2}}), "causal<=2");
}

}  // namespace
}  // namespace cria
