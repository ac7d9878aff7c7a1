#include "lab/inspect.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "lab/draw.h"

namespace cria {
namespace {

std::vector<Inspection> inspect_small(const char* name, Sizes sizes) {
  const std::unique_ptr<Problem> problem =
      make_problem(find_problem(name), {.device = kCpu, .sizes = std::move(sizes), .sets = 1});
  return inspect(*problem, {});
}

TEST(Inspect, FootprintIsTheDeclaredCost) {
  const std::vector<Inspection> all = inspect_small("vector_add", {{"n", 5000}});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(double(all[0].trace.unique_bytes_read()), all[0].cost.bytes_read);
  const std::string table = to_table(all[0]);
  EXPECT_EQ(table.find("DIFFERENT"), std::string::npos) << table;
  EXPECT_NE(table.find("vector_add.h:"), std::string::npos) << table;
}

TEST(Inspect, LadderShowsWhyItsRungsDiffer) {
  const std::vector<Inspection> all = inspect_small("transpose", {{"rows", 256}, {"cols", 256}});
  ASSERT_EQ(all.size(), 4u);
  const auto stores = [&](int i) { return all[i].trace.total(tile::AccessKind::kStore); };
  const auto conflicts = [&](int i) {
    return all[i].trace.total(tile::AccessKind::kSharedLoad).conflicts +
           all[i].trace.total(tile::AccessKind::kSharedStore).conflicts;
  };
  EXPECT_EQ(all[1].kernel, "transpose_coalesced_loads");
  EXPECT_LT(stores(1).useful_bytes_per_sector(), 16);
  EXPECT_EQ(all[3].kernel, "transpose_padded");
  EXPECT_EQ(stores(3).useful_bytes_per_sector(), 32);
  EXPECT_LT(conflicts(3), conflicts(2));
}

// What transpose.h says of the padded tiles: 16-byte accesses leave the large one a conflict per
// request, and the small one none.
TEST(Inspect, PaddingLeavesAConflictPerRequestInTheLargeTileOnly) {
  const std::unique_ptr<Problem> problem =
      make_problem(find_problem("transpose"),
                   {.device = kCpu, .sizes = {{"rows", 128}, {"cols", 128}}, .sets = 1});
  for (const auto& [config, each] : {std::pair{"tile64x64_threads512", 1}, {"tile32x32", 0}}) {
    const std::vector<Inspection> padded = inspect(*problem, {.config = config});
    ASSERT_EQ(padded.size(), 1u);
    for (const auto kind : {tile::AccessKind::kSharedLoad, tile::AccessKind::kSharedStore}) {
      const tile::AccessCounts counts = padded[0].trace.total(kind);
      EXPECT_GT(counts.requests, 0) << config;
      EXPECT_EQ(counts.conflicts, each * counts.requests) << config;
    }
  }
}

TEST(Inspect, JsonHasEveryLine) {
  const std::vector<Inspection> all = inspect_small("rmsnorm", {{"rows", 4}, {"cols", 1024}});
  const Json json = to_json(all.at(0));
  EXPECT_EQ(json["lines"].size(), all[0].trace.lines().size());
  EXPECT_EQ(json["declared_bytes_read"], json["unique_bytes_read"]);
}

tile::AccessRecord record(tile::AccessKind kind, int bytes, int64_t stride) {
  tile::AccessRecord r{};
  r.kind = kind, r.bytes = bytes, r.file = "k.h", r.operand = 0;
  for (int lane = 0; lane < 32; ++lane) r.address[lane] = 4096 + uint64_t(lane * stride);
  return r;
}

TEST(Draw, CoalescedIsGreenStridedIsRed) {
  const std::string good = draw_access(record(tile::AccessKind::kLoad, 4, 4), true);
  EXPECT_NE(good.find("coalesced: 4 sectors for 128 bytes"), std::string::npos) << good;
  EXPECT_NE(good.find("\x1b[32m"), std::string::npos);
  EXPECT_NE(good.find("[########]"), std::string::npos);
  const std::string bad = draw_access(record(tile::AccessKind::kLoad, 4, 512), true);
  EXPECT_NE(bad.find("not coalesced: 32 sectors for 128 bytes"), std::string::npos) << bad;
  EXPECT_NE(bad.find("\x1b[31m"), std::string::npos);
  EXPECT_NE(bad.find("[#.......]"), std::string::npos);
}

TEST(Draw, BankConflictsAreYellow) {
  const std::string bad = draw_access(record(tile::AccessKind::kSharedLoad, 4, 128), true);
  EXPECT_NE(bad.find("32 wavefronts, 31 of them for bank conflicts"), std::string::npos) << bad;
  EXPECT_NE(bad.find("\x1b[33m"), std::string::npos);
  const std::string good = draw_access(record(tile::AccessKind::kSharedLoad, 4, 132), false);
  EXPECT_NE(good.find("1 wavefronts, 0 of them"), std::string::npos) << good;
  EXPECT_EQ(good.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace cria
