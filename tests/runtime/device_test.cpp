#include "runtime/device.h"

#include "on_device.h"
#include "runtime/cpu/cores.h"

namespace cria {
namespace {

using test::expect_error;
using test::has_cuda;

TEST(Device, ParsesNames) {
  EXPECT_EQ(parse_device("cpu"), kCpu);
  EXPECT_EQ(parse_device("auto"), has_cuda() ? devices()[1] : kCpu);
  EXPECT_EQ(name_of(kCpu), "cpu");
  EXPECT_EQ(name_of(Device{Backend::cuda, 3}), "cuda:3");
}

TEST(Device, RejectsOtherNames) {
  for (const char* text : {"", "gpu", "CPU", "cpu:0", "cuda:", "cuda:x", "cuda:-1", "cuda:1x"}) {
    expect_error([&] { parse_device(text); }, "use cpu, cuda, cuda:N or auto");
  }
}

TEST(Device, SaysWhatToDoWithoutCuda) {
  if (has_cuda()) GTEST_SKIP() << "this machine has a CUDA device";
  for (const char* text : {"cuda", "cuda:0", "cuda:7"}) {
    expect_error([&] { parse_device(text); }, "or use --device cpu");
  }
}

TEST(Device, RejectsCudaDevicesThatAreNotThere) {
  if (!has_cuda()) GTEST_SKIP() << "no CUDA device";
  expect_error([] { parse_device("cuda:99"); }, "there is no device cuda:99");
  expect_error([] { compute_capability({Backend::cuda, 99}); }, "no such CUDA device");
}

TEST(Device, DescribesTheCpu) {
  DeviceInfo info = describe(kCpu);
  EXPECT_FALSE(info.name.empty());
  EXPECT_GE(info.cores, 1);
  EXPECT_GT(info.memory_bytes, size_t{1} << 20);
  EXPECT_EQ(info.compute_capability, 0);
  EXPECT_EQ(compute_capability(kCpu), 0);
  EXPECT_EQ(core_count(kCpu), available_cores());
}

TEST(Device, DescribesCuda) {
  if (!has_cuda()) GTEST_SKIP() << "no CUDA device";
  Device device = devices()[1];
  EXPECT_EQ(parse_device("cuda"), device);
  EXPECT_EQ(parse_device(name_of(device)), device);
  DeviceInfo info = describe(device);
  EXPECT_FALSE(info.name.empty());
  EXPECT_GE(info.compute_capability, 80);
  EXPECT_EQ(info.compute_capability, compute_capability(device));
  EXPECT_EQ(info.cores, core_count(device));
  EXPECT_GT(info.memory_bytes, size_t{1} << 30);
  EXPECT_GE(info.shared_bytes_per_block, 48u << 10);
  EXPECT_GE(info.shared_bytes_per_core, info.shared_bytes_per_block);
  EXPECT_GT(info.clock_mhz, 100);
  EXPECT_GT(info.memory_clock_mhz, 100);
  EXPECT_NE(info.driver_version.find('.'), std::string::npos);
}

}  // namespace
}  // namespace cria
