#include "runtime/host_buffer.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "on_device.h"
#include "runtime/buffer.h"
#include "runtime/graph.h"

namespace cria {
namespace {

class HostBufferTest : public test::OnDevice {};
INSTANTIATE_TEST_SUITE_P(Backends, HostBufferTest, test::every_backend(), test::backend_name);

// In a graph the place stays and what is there changes.
TEST_P(HostBufferTest, TakesPartInGraphs) {
  Stream stream(device());
  HostBuffer sent(device(), 100), received(device(), 100);
  Buffer buffer(device(), 100);
  Graph graph = Graph::capture(stream, [&] {
    stream.copy(buffer.as<void>(), sent.as<void>(), 100);
    stream.copy(received.as<void>(), buffer.as<void>(), 100);
  });
  for (const int value : {1, 2, 3}) {
    std::fill_n(sent.as<char>(), 100, char(value));
    graph.replay(stream);
    stream.synchronize();
    EXPECT_EQ(std::vector<char>(received.as<char>(), received.as<char>() + 100),
              std::vector<char>(100, char(value)));
  }
}

TEST_P(HostBufferTest, Moves) {
  HostBuffer first(device(), 100), second(device(), 0);
  EXPECT_EQ(second.as<void>(), nullptr);
  void* data = first.as<void>();
  ASSERT_NE(data, nullptr);
  second = std::move(first);
  EXPECT_EQ(second.as<void>(), data);
  EXPECT_EQ(second.bytes(), 100u);
  const HostBuffer third(std::move(second));
  EXPECT_EQ(third.as<void>(), data);
}

TEST_P(HostBufferTest, SaysWhenMemoryRunsOut) {
  test::expect_error([&] { HostBuffer(device(), size_t{1} << 60); }, "use smaller shapes");
}

}  // namespace
}  // namespace cria
