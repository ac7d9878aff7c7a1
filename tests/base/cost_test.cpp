#include "base/cost.h"

#include <gtest/gtest.h>

namespace cria {
namespace {

TEST(Cost, AddsUp) {
  const Cost sum = Cost{.flops = 6, .bytes_read = 2, .bytes_written = 1} + Cost{10, 20, 30};
  EXPECT_EQ(sum.flops, 16);
  EXPECT_EQ(sum.bytes_read, 22);
  EXPECT_EQ(sum.bytes_written, 31);
  EXPECT_EQ(sum.bytes(), 53);
}

}  // namespace
}  // namespace cria
