#include "runtime/stream.h"

#include <chrono>
#include <thread>
#include <vector>

#include "on_device.h"
#include "runtime/event.h"

namespace cria {
namespace {

using test::expect_error;

class StreamTest : public test::OnDevice {};
INSTANTIATE_TEST_SUITE_P(Backends, StreamTest, test::every_backend(), test::backend_name);

TEST_P(StreamTest, CopiesAndFillsInOrder) {
  Stream stream(device());
  Buffer buffer(device(), 4000);
  std::vector<unsigned char> host(4000, 9);
  stream.fill(buffer.as<void>(), 1, 4000);
  stream.fill(buffer.as<std::byte>() + 1000, 2, 1000);
  stream.copy(buffer.as<std::byte>() + 2000, buffer.as<std::byte>() + 1000, 500);
  stream.copy(host.data(), buffer.as<void>(), 4000);
  stream.synchronize();
  for (int i = 0; i < 4000; ++i) ASSERT_EQ(host[i], i >= 1000 && i < 2500 ? 2 : 1) << i;
  stream.fill(nullptr, 0, 0);
  stream.copy(nullptr, nullptr, 0);
}

TEST_P(StreamTest, Moves) {
  Stream first(device());
  void* native = first.native();
  EXPECT_EQ(native != nullptr, on_cuda());
  Stream second(std::move(first));
  EXPECT_EQ(second.native(), native);
  Stream third(device());
  third = std::move(second);
  EXPECT_EQ(third.native(), native);
  third.synchronize();
}

TEST_P(StreamTest, WorkspaceGrowsAndStays) {
  Stream stream(device());
  std::byte* small = stream.workspace(1000);
  EXPECT_EQ(stream.workspace(10), small);
  std::byte* large = stream.workspace(100000);
  EXPECT_EQ(stream.workspace(1000), large);
  stream.fill(large, 0, 100000);
  stream.synchronize();
}

TEST_P(StreamTest, EventsTimeTheWorkBetweenThem) {
  Stream stream(device());
  Event start(device()), end(device());
  const size_t bytes = on_cuda() ? size_t{256} << 20 : 1 << 20;
  Buffer buffer(device(), bytes);
  stream.fill(buffer.as<void>(), 0, bytes);
  start.record(stream);
  stream.fill(buffer.as<void>(), 1, bytes);
  end.record(stream);
  double time_us = elapsed_us(start, end);
  EXPECT_GT(time_us, on_cuda() ? 10 : 0);  // 256 MiB in 10 us would be 27 TB/s
  EXPECT_LT(time_us, 1e6);
}

TEST_P(StreamTest, AnEventMustBeRecordedBeforeItIsTimed) {
  Event never(device()), also_never(device());
  EXPECT_THROW(elapsed_us(never, also_never), Error);
}

TEST(CpuEvent, MeasuresSleep) {
  Stream stream(kCpu);
  Event start(kCpu), end(kCpu);
  start.record(stream);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  end.record(stream);
  EXPECT_GE(elapsed_us(start, end), 2000);
  Event moved(std::move(end));
  EXPECT_GE(elapsed_us(start, moved), 2000);
}

TEST(CudaEvent, BelongsToOneDevice) {
  if (!test::has_cuda()) GTEST_SKIP() << "no CUDA device";
  Stream stream(kCpu);
  Event event(Device{Backend::cuda, 0});
  expect_error([&] { event.record(stream); }, "its own device");
}

TEST(CudaStub, UseIsAnError) {
  if (test::has_cuda()) GTEST_SKIP() << "this machine has a CUDA device";
  const Device cuda{Backend::cuda, 0};
  EXPECT_THROW(Stream{cuda}, Error);
  EXPECT_THROW(Event{cuda}, Error);
  EXPECT_THROW((Buffer{cuda, 16}), Error);
}

}  // namespace
}  // namespace cria
