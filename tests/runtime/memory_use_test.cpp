// What the system says of memory, against memory taken on purpose.
#include "runtime/memory_use.h"

#include <gtest/gtest.h>

#include <fstream>

#include "runtime/buffer.h"
#include "runtime/on_device.h"

namespace cria::test {
namespace {

constexpr size_t kTaken = 96 << 20;
constexpr int64_t kSlack =
    16 << 20;  // of what the process takes besides, and other programs of a GPU

class MemoryUseTest : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Backends, MemoryUseTest, every_backend(), backend_name);

Buffer touched(Device device) {
  Buffer buffer(device, kTaken);
  buffer.fill_bytes(1);
  return buffer;
}

TEST_P(MemoryUseTest, HasLimits) {
  const MemoryUse use = memory_use(device());
  EXPECT_GT(use.free, size_t{1} << 20);
  EXPECT_LE(use.free, describe(device()).memory_bytes);
  EXPECT_GT(use.used, 0u);
  EXPECT_GE(use.peak, use.used);
}

TEST_P(MemoryUseTest, PeaksAreSeen) {
  PeakMemory peak(device());
  const MemoryUse before = memory_use(device());
  const Buffer buffer = touched(device());
  EXPECT_GE(memory_use(device()).used, before.used + kTaken - kSlack);
  EXPECT_GE(peak.bytes(), int64_t{kTaken} - kSlack);
  EXPECT_LE(peak.bytes(), int64_t{kTaken} + kSlack);
}

// What was taken and given back before does not count, nor what is forgotten.
TEST_P(MemoryUseTest, PeaksOfThePastAreNot) {
  if (!on_cuda() && !std::ofstream("/proc/self/clear_refs").is_open())
    GTEST_SKIP() << "this system does not let a process forget its peak";
  touched(device());
  PeakMemory peak(device());
  EXPECT_LE(peak.bytes(), kSlack);
  touched(device());
  peak.restart();
  EXPECT_LE(peak.bytes(), kSlack);
}

TEST(MemoryUse, OfTheProcessIsAllOfIt) {
  { const Buffer buffer = touched(kCpu); }
  PeakMemory peak(kCpu, PeakMemory::Since::process);
  EXPECT_EQ(peak.bytes(), static_cast<int64_t>(memory_use(kCpu).peak));
  EXPECT_GE(peak.bytes(), static_cast<int64_t>(kTaken));
}

}  // namespace
}  // namespace cria::test
