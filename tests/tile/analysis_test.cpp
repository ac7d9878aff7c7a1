// The analyses, fed single records: sectors, useful bytes, wavefronts, footprints.
#include "tile/trace/analysis.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"

namespace cria::tile {
namespace {

constexpr uint64_t kOff = AccessRecord::kInactive;

AccessRecord request(AccessKind kind, int bytes, std::function<uint64_t(int)> address,
                     int operand = -1) {
  AccessRecord r{kind, 0, 0, "file.h", 1, operand, bytes, {}};
  for (int lane = 0; lane < 32; ++lane) r.address[lane] = address(lane);
  return r;
}
AccessCounts loads(int bytes, std::function<uint64_t(int)> address) {
  return count(request(AccessKind::kLoad, bytes, address));
}
AccessCounts shared(int bytes, std::function<uint64_t(int)> address) {
  return count(request(AccessKind::kSharedLoad, bytes, address));
}

TEST(TraceAnalysis, SectorsOfGlobalRequests) {
  EXPECT_EQ(loads(16, [](int l) { return 1024 + l * 16; }).sectors, 16);  // 128-bit, coalesced
  EXPECT_EQ(loads(4, [](int l) { return 1024 + l * 4; }).sectors, 4);
  EXPECT_EQ(loads(2, [](int l) { return 1024 + l * 2; }).sectors, 2);
  EXPECT_EQ(loads(4, [](int l) { return 1028 + l * 4; }).sectors, 5);    // shifted by one element
  EXPECT_EQ(loads(4, [](int l) { return 1024 + l * 32; }).sectors, 32);  // one sector each
  EXPECT_EQ(loads(4, [](int l) { return 1024 + l * 4096; }).sectors, 32);
  EXPECT_EQ(loads(4, [](int) { return 1024; }).sectors, 1);  // all lanes one word
  EXPECT_EQ(loads(4, [](int l) { return l < 8 ? 1024 + l * 4 : kOff; }).sectors, 1);
  EXPECT_EQ(loads(4, [](int l) { return 1024 + (31 - l) * 4; }).sectors, 4);  // any order
}

TEST(TraceAnalysis, UsefulBytes) {
  EXPECT_DOUBLE_EQ(loads(4, [](int l) { return 1024 + l * 4; }).useful_bytes_per_sector(), 32);
  EXPECT_DOUBLE_EQ(loads(4, [](int l) { return 1024 + l * 32; }).useful_bytes_per_sector(), 4);
  const AccessCounts broadcast = loads(4, [](int) { return 1024; });
  EXPECT_EQ(broadcast.useful_bytes, 4);
  EXPECT_EQ(broadcast.requested_bytes, 128);
}

TEST(TraceAnalysis, BankConflicts) {
  auto conflicts = [](int bytes, auto address) { return shared(bytes, address).conflicts; };
  EXPECT_EQ(conflicts(4, [](int l) { return l * 4; }), 0);
  EXPECT_EQ(conflicts(4, [](int l) { return l * 8; }), 1);
  EXPECT_EQ(conflicts(4, [](int l) { return l * 128; }), 31);
  EXPECT_EQ(conflicts(4, [](int l) { return l * 132; }), 0);  // padded
  EXPECT_EQ(conflicts(4, [](int) { return 64; }), 0);         // broadcast
  EXPECT_EQ(conflicts(2, [](int l) { return l * 2; }), 0);    // two lanes a word
  EXPECT_EQ(conflicts(4, [](int l) { return l < 2 ? l * 128 : kOff; }), 1);
  EXPECT_EQ(conflicts(8, [](int l) { return l * 8; }), 0);
  EXPECT_EQ(conflicts(8, [](int l) { return l * 128; }), 30);  // 16 per half-warp
  EXPECT_EQ(conflicts(16, [](int l) { return l * 16; }), 0);
  EXPECT_EQ(conflicts(16, [](int l) { return l * 128; }), 28);  // 8 per quarter-warp
  EXPECT_EQ(shared(4, [](int l) { return l * 4; }).wavefronts, 1);
  EXPECT_EQ(shared(8, [](int l) { return l * 8; }).wavefronts, 2);
  EXPECT_EQ(shared(16, [](int l) { return l * 16; }).wavefronts, 4);
  EXPECT_EQ(shared(16, [](int l) { return l < 8 ? l * 16 : kOff; }).wavefronts, 1);
}

TEST(TraceAnalysis, BulkCopiesCountTheRowsTheyRead) {
  AccessRecord box =
      request(AccessKind::kBulkLoad, 128, [](int l) { return l == 0 ? 4096 : kOff; });
  box.rows = 64;
  box.row_stride = 1000 * 32;
  EXPECT_EQ(count(box).sectors, 64 * 4);
  EXPECT_EQ(count(box).useful_bytes, 64 * 128);
  box.bytes = 40;
  EXPECT_EQ(count(box).sectors, 64 * 2);
}

class TraceOperands : public testing::Test {
 protected:
  // x: 2 matrices of 3 x 5 in rows of 8; y: 4 heads of 2 x 4 inside rows of 16.
  std::vector<float> x_ = std::vector<float>(64), y_ = std::vector<float>(64);
  OperandTable table() {
    OperandTable t;
    t.add("x", Tensor<const float>{x_.data(), 2, 3, 5, 8, 24});
    t.add("y", heads_of(y_.data(), 1, 2, 4, 4, 16));
    return t;
  }
  static uint64_t address(const float& v) { return reinterpret_cast<uint64_t>(&v); }
};

TEST_F(TraceOperands, ElementsAreFoundByTheirStrides) {
  const OperandTable t = table();
  const auto& x = t.list()[0];
  const auto& y = t.list()[1];
  auto expect = [](ElementIndex i, int64_t b, int64_t r, int64_t c) {
    EXPECT_EQ(i.batch, b);
    EXPECT_EQ(i.row, r);
    EXPECT_EQ(i.col, c);
  };
  expect(OperandTable::index_of(x, address(x_[24 + 16 + 4])), 1, 2, 4);
  expect(OperandTable::index_of(x, address(x_[8 + 6])), 0, 1, 6);
  expect(OperandTable::index_of(y, address(y_[16 + 4 * 3 + 2])), 3, 1, 2);
  EXPECT_TRUE(OperandTable::contains(x, address(x_[44])));
  EXPECT_FALSE(OperandTable::contains(x, address(x_[14])));  // the gap between rows
  EXPECT_FALSE(OperandTable::contains(x, address(x_[0]) - 4));
  EXPECT_EQ(t.find(address(y_[31]), true), 1);
  EXPECT_EQ(t.find(address(y_[32]), true), -1);
}

TEST_F(TraceOperands, BytesCountOnce) {
  Trace trace;
  trace.begin("k", table(), 1, 1);
  const AccessRecord r = request(
      AccessKind::kLoad, 4, [&](int l) { return l < 5 ? address(x_[l]) : kOff; }, 0);
  trace.add(r);
  trace.add(r);
  EXPECT_EQ(trace.unique_bytes_read(0), 20);
  EXPECT_EQ(trace.unique_bytes_read(), 20);
  EXPECT_EQ(trace.unique_bytes_written(), 0);
  EXPECT_EQ(trace.total(AccessKind::kLoad).requests, 2);
  EXPECT_EQ(trace.total(AccessKind::kLoad).requested_bytes, 40);
}

TEST_F(TraceOperands, TheLogKeepsTheFirstRecords) {
  Trace trace({.log_records = 1});
  trace.begin("k", table(), 1, 1);
  for (int i = 0; i < 3; ++i)
    trace.add(request(
        AccessKind::kLoad, 4, [&](int l) { return l == i ? address(x_[i]) : kOff; }, 0));
  ASSERT_EQ(trace.log().size(), 1u);
  EXPECT_EQ(trace.log()[0].address[0], address(x_[0]));
}

}  // namespace
}  // namespace cria::tile
