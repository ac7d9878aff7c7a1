#include "runtime/buffer.h"

#include <cstdint>
#include <numeric>
#include <vector>

#include "on_device.h"
#include "runtime/stream.h"

namespace cria {
namespace {

using test::expect_error;

class BufferTest : public test::OnDevice {};
INSTANTIATE_TEST_SUITE_P(Backends, BufferTest, test::every_backend(), test::backend_name);

TEST_P(BufferTest, IsAligned) {
  for (size_t bytes : {1, 100, 4096, 100000}) {
    Buffer buffer(device(), bytes);
    auto address = reinterpret_cast<uintptr_t>(buffer.as<void>());
    EXPECT_EQ(address % (on_cuda() ? 256 : 4096), 0u);
    EXPECT_EQ(buffer.bytes(), bytes);
  }
}

TEST_P(BufferTest, CopiesThereAndBack) {
  std::vector<int32_t> sent(12345), received(12345, -1);
  std::iota(sent.begin(), sent.end(), 7);
  Buffer buffer(device(), sent.size() * 4);
  buffer.copy_from_host(sent.data(), buffer.bytes());
  buffer.copy_to_host(received.data(), buffer.bytes());
  EXPECT_EQ(sent, received);

  int32_t patch[2] = {-5, -6}, got[3] = {};
  buffer.copy_from_host(patch, 8, 40);
  buffer.copy_to_host(got, 12, 36);
  EXPECT_EQ(got[0], 7 + 9);
  EXPECT_EQ(got[1], -5);
  EXPECT_EQ(got[2], -6);
}

TEST_P(BufferTest, FillsBytes) {
  Buffer buffer(device(), 1001);
  buffer.fill_bytes(0xab);
  std::vector<unsigned char> host(1001);
  buffer.copy_to_host(host.data(), host.size());
  EXPECT_EQ(host, std::vector<unsigned char>(1001, 0xab));
}

// A copy to the host sees the work of a stream that was not waited for.
TEST_P(BufferTest, CopiesAfterEarlierWork) {
  Stream stream(device());
  const size_t bytes = 64 << 20;
  Buffer buffer(device(), bytes);
  for (int round = 1; round <= 3; ++round) {
    stream.fill(buffer.as<void>(), round, bytes);
    unsigned char last = 0;
    buffer.copy_to_host(&last, 1, bytes - 1);
    ASSERT_EQ(last, round);
  }
}

TEST_P(BufferTest, MayBeEmpty) {
  Buffer buffer(device(), 0);
  EXPECT_EQ(buffer.as<void>(), nullptr);
  buffer.copy_from_host(nullptr, 0);
  buffer.copy_to_host(nullptr, 0);
  buffer.fill_bytes(0);
}

TEST_P(BufferTest, RefusesCopiesThatDoNotFit) {
  Buffer buffer(device(), 100);
  std::vector<std::byte> host(200);
  expect_error([&] { buffer.copy_from_host(host.data(), 101); }, "does not fit");
  expect_error([&] { buffer.copy_to_host(host.data(), 50, 51); }, "does not fit");
  expect_error([&] { buffer.copy_to_host(host.data(), 1, SIZE_MAX); }, "does not fit");
  expect_error([&] { buffer.copy_to_host(host.data(), SIZE_MAX, 1); }, "does not fit");
}

TEST_P(BufferTest, SaysWhenMemoryRunsOut) {
  expect_error([&] { Buffer(device(), size_t{1} << 60); }, "use smaller shapes");
  expect_error([&] { Buffer(kCpu, SIZE_MAX); }, "use smaller shapes");
  Buffer works_afterwards(device(), 1000);
  works_afterwards.fill_bytes(1);
}

TEST_P(BufferTest, Moves) {
  Buffer first(device(), 64);
  void* data = first.as<void>();
  Buffer second(std::move(first));
  EXPECT_EQ(second.as<void>(), data);
  EXPECT_EQ(first.as<void>(), nullptr);
  Buffer third(device(), 32);
  third = std::move(second);
  EXPECT_EQ(third.as<void>(), data);
  EXPECT_EQ(third.bytes(), 64u);
}

}  // namespace
}  // namespace cria
