#include "runtime/graph.h"

#include <vector>

#include "on_device.h"
#include "runtime/event.h"
#include "runtime/product.h"
#include "runtime/recorder.h"

namespace cria {
namespace {

using test::expect_error;

class GraphTest : public test::OnDevice {
 protected:
  static constexpr size_t kBytes = 1000;

  std::vector<unsigned char> host(const Buffer& buffer) {
    std::vector<unsigned char> bytes(buffer.bytes());
    buffer.copy_to_host(bytes.data(), bytes.size());
    return bytes;
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, GraphTest, test::every_backend(), test::backend_name);

TEST_P(GraphTest, RunsOnReplayOnly) {
  Stream stream(device());
  Buffer from(device(), kBytes), to(device(), kBytes);
  from.fill_bytes(1);
  to.fill_bytes(0);
  Graph graph = Graph::capture(stream, [&] {
    stream.copy(to.as<void>(), from.as<void>(), kBytes);
    stream.fill(to.as<void>(), 7, kBytes / 2);
  });
  EXPECT_EQ(host(to), std::vector<unsigned char>(kBytes, 0));

  for (int value : {1, 2, 3}) {
    from.fill_bytes(value);
    graph.replay(stream);
    auto got = host(to);
    EXPECT_EQ(got.front(), 7);
    EXPECT_EQ(got[kBytes / 2 - 1], 7);
    EXPECT_EQ(got[kBytes / 2], value);
    EXPECT_EQ(got.back(), value);
  }
}

// The first product of a stream, and of a shape, may be inside a capture.
TEST_P(GraphTest, HoldsProducts) {
  Stream stream(device());
  const int n = 48;
  std::vector<float> ones(n * n, 1.0f), got(n * n);
  Buffer a(device(), n * n * 4), b(device(), n * n * 4), c(device(), n * n * 4);
  a.copy_from_host(ones.data(), a.bytes());
  b.copy_from_host(ones.data(), b.bytes());
  c.fill_bytes(0);
  Product add{.m = n, .n = n, .k = n, .alpha = 0.5f, .beta = 1};
  Graph graph = Graph::capture(
      stream, [&] { multiply(stream, add, a.as<void>(), b.as<void>(), c.as<void>()); });
  Graph moved = std::move(graph);
  for (int i = 0; i < 4; ++i) moved.replay(stream);
  c.copy_to_host(got.data(), c.bytes());
  for (float x : got) ASSERT_EQ(x, 4 * 0.5f * n);
}

TEST_P(GraphTest, AFailedCaptureLeavesTheStreamUsable) {
  Stream stream(device());
  Recorder recorder(Recorder::Mode::count);
  stream.set_recorder(&recorder);
  Buffer buffer(device(), kBytes);
  auto broken = [&] {
    stream.fill(buffer.as<void>(), 1, kBytes);
    fail("step is broken");
  };
  expect_error(
      [&] {
        Graph graph = Graph::capture(stream, broken);
        graph.replay(stream);  // where the CPU finds out
      },
      "step is broken");
  EXPECT_EQ(stream.recorder(), &recorder);
  stream.fill(buffer.as<void>(), 2, kBytes);
  EXPECT_EQ(host(buffer), std::vector<unsigned char>(kBytes, 2));
}

TEST_P(GraphTest, IsRecorded) {
  Stream stream(device());
  Buffer buffer(device(), kBytes);
  auto step = [&] {
    for (int i = 0; i < 5; ++i) {
      record_launch(stream, "fill", "", {.bytes_written = kBytes},
                    [&] { stream.fill(buffer.as<void>(), i, kBytes); });
    }
  };
  for (auto mode : {Recorder::Mode::count, Recorder::Mode::time}) {
    Recorder recorder(mode);
    stream.set_recorder(&recorder);
    Graph graph = Graph::capture(stream, step);
    EXPECT_EQ(recorder.launches(), 0);
    graph.replay(stream);
    graph.replay(stream);
    EXPECT_EQ(recorder.launches(), 10);
    EXPECT_EQ(recorder.total_cost().bytes(), 10.0 * kBytes);
    const auto& records = recorder.records();
    EXPECT_EQ(records.size(), on_cuda() ? 2u : 10u);
    EXPECT_EQ(records[0].name, on_cuda() ? "graph" : "fill");
    EXPECT_EQ(records[0].timed, mode == Recorder::Mode::time);
    stream.set_recorder(nullptr);
  }
}

}  // namespace
}  // namespace cria
