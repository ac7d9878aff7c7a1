#include "kernels/shares.h"

#include <gtest/gtest.h>

#include "runtime/on_device.h"

namespace cria::kernels {
namespace {

// The bits of sums on the CPU hang on these: changing one makes other losses of old runs.
TEST(Shares, OnTheCpuTheProblemAloneDecides) {
  EXPECT_EQ(rmsnorm_shares(kCpu, 1), 1);
  EXPECT_EQ(rmsnorm_shares(kCpu, 64), 1);
  EXPECT_EQ(rmsnorm_shares(kCpu, 1024), 16);
  EXPECT_EQ(rmsnorm_shares(kCpu, 1 << 20), 64);
  EXPECT_EQ(sum_shares(kCpu), 64);
  EXPECT_EQ(decode_parts(kCpu, 2, 64), 1);
  EXPECT_EQ(decode_parts(kCpu, 2, 1024), 4);
  EXPECT_EQ(decode_parts(kCpu, 8, 1 << 20), 4);
  EXPECT_EQ(decode_parts(kCpu, 100, 1 << 20), 1);
  EXPECT_EQ(cores_to_suit(kCpu), 8);
}

TEST(Shares, OnCudaTheyDivideAmongMultiprocessors) {
  if (!test::has_cuda()) GTEST_SKIP() << "no CUDA device";
  const Device cuda = devices().at(1);
  const int cores = core_count(cuda);
  EXPECT_EQ(rmsnorm_shares(cuda, 1) % (4 * cores), 0);
  EXPECT_EQ(sum_shares(cuda) % (4 * cores), 0);
  EXPECT_GE(decode_parts(cuda, 8, 1 << 20) * 8, 4 * cores);
  EXPECT_EQ(cores_to_suit(cuda), cores);
}

}  // namespace
}  // namespace cria::kernels
