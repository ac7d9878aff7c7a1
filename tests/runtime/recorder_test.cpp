#include "runtime/recorder.h"

#include <chrono>
#include <thread>

#include "on_device.h"
#include "runtime/product.h"

namespace cria {
namespace {

using test::expect_error;

void sleep_us(int us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

class RecorderTest : public test::OnDevice {};
INSTANTIATE_TEST_SUITE_P(Backends, RecorderTest, test::every_backend(), test::backend_name);

TEST_P(RecorderTest, WithoutOneNothingIsKept) {
  Stream stream(device());
  int calls = 0;
  record_launch(stream, "a", "", {}, [&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST_P(RecorderTest, CountsLaunches) {
  Stream stream(device());
  Recorder recorder(Recorder::Mode::count);
  stream.set_recorder(&recorder);
  for (int i = 0; i < 3; ++i) {
    record_launch(stream, "norm", "block=256", {.flops = 10, .bytes_read = 20}, [] {});
  }
  record_launch(stream, "add", "", {.bytes_written = 5}, [] {});
  stream.set_recorder(nullptr);
  record_launch(stream, "unseen", "", {}, [] {});

  ASSERT_EQ(recorder.records().size(), 4u);
  EXPECT_EQ(recorder.launches(), 4);
  EXPECT_EQ(recorder.records()[1].name, "norm");
  EXPECT_EQ(recorder.records()[1].config, "block=256");
  EXPECT_EQ(recorder.records()[3].name, "add");
  EXPECT_FALSE(recorder.records()[0].timed);
  EXPECT_EQ(recorder.total_cost().flops, 30);
  EXPECT_EQ(recorder.total_cost().bytes(), 65);
  recorder.clear();
  EXPECT_TRUE(recorder.records().empty());
  EXPECT_EQ(recorder.launches(), 0);
}

TEST_P(RecorderTest, TimesLaunches) {
  Stream stream(device());
  const size_t bytes = on_cuda() ? size_t{256} << 20 : 1 << 20;
  Buffer buffer(device(), bytes);
  Recorder recorder(Recorder::Mode::time);
  stream.set_recorder(&recorder);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 3; ++i) {
      record_launch(stream, "fill", "", {.bytes_written = double(bytes)},
                    [&] { stream.fill(buffer.as<void>(), i, bytes); });
    }
    const auto& records = recorder.records();
    ASSERT_EQ(records.size(), 3u);
    EXPECT_EQ(records[0].start_us, 0);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(records[i].timed);
      EXPECT_GT(records[i].time_us, on_cuda() ? 10 : 0);
      EXPECT_LT(records[i].time_us, 1e6);
      if (i > 0) {
        // An event's clock ticks every half microsecond on CUDA.
        EXPECT_GE(records[i].start_us + 1, records[i - 1].start_us + records[i - 1].time_us);
      }
    }
    recorder.clear();
  }
}

TEST_P(RecorderTest, SeesProducts) {
  Stream stream(device());
  Buffer a(device(), 6 * 4), b(device(), 12 * 4), c(device(), 8 * 4);
  a.fill_bytes(0);
  b.fill_bytes(0);
  for (auto mode : {Recorder::Mode::count, Recorder::Mode::time}) {
    Recorder recorder(mode);
    stream.set_recorder(&recorder);
    Product product{.m = 2, .n = 4, .k = 3, .trans_b = true};
    multiply(stream, product, a.as<void>(), b.as<void>(), c.as<void>());
    multiply(stream, {.m = 0, .n = 4, .k = 3}, nullptr, nullptr, nullptr);  // no launch
    ASSERT_EQ(recorder.records().size(), 1u);
    EXPECT_EQ(recorder.records()[0].name, "product");
    EXPECT_EQ(recorder.records()[0].config, "2x4x3 NT f32");
    EXPECT_EQ(recorder.records()[0].cost.flops, 48);
    EXPECT_EQ(recorder.records()[0].timed, mode == Recorder::Mode::time);
  }
}

TEST_P(RecorderTest, AFailedLaunchLeavesNoRecord) {
  Stream stream(device());
  for (auto mode : {Recorder::Mode::count, Recorder::Mode::time}) {
    Recorder recorder(mode);
    stream.set_recorder(&recorder);
    record_launch(stream, "good", "", {}, [] {});
    expect_error([&] { record_launch(stream, "bad", "", {}, [] { fail("no such kernel"); }); },
                 "no such kernel");
    record_launch(stream, "good again", "", {}, [] {});
    ASSERT_EQ(recorder.records().size(), 2u);
    EXPECT_EQ(recorder.records()[1].name, "good again");
  }
}

TEST(CpuRecorder, MeasuresSleep) {
  Stream stream(kCpu);
  Recorder recorder(Recorder::Mode::time);
  stream.set_recorder(&recorder);
  record_launch(stream, "first", "", {}, [] { sleep_us(1000); });
  sleep_us(500);
  record_launch(stream, "second", "", {}, [] { sleep_us(2000); });
  const auto& records = recorder.records();
  EXPECT_GE(records[0].time_us, 1000);
  EXPECT_GE(records[1].time_us, 2000);
  EXPECT_GE(records[1].start_us, 1500);
}

TEST(CudaRecorder, TimesOneDevice) {
  if (!test::has_cuda()) GTEST_SKIP() << "no CUDA device";
  Stream cpu(kCpu), cuda(Device{Backend::cuda, 0});
  Recorder recorder(Recorder::Mode::time);
  cpu.set_recorder(&recorder);
  cuda.set_recorder(&recorder);
  record_launch(cpu, "a", "", {}, [] {});
  recorder.clear();
  expect_error([&] { record_launch(cuda, "b", "", {}, [] {}); }, "one device only");
}

}  // namespace
}  // namespace cria
