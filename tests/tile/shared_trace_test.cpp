// What the tracer counts for tiles in shared memory: fetched, multiplied and stored, on both
// lowerings.
#define CRIA_TARGET_TRACE 1
#include <gtest/gtest.h>

#include "base/dtype.h"
#include "base/tensor.h"
#include "tile/target.h"

namespace cria::tile {
namespace {

constexpr AccessKind kLoad = AccessKind::kLoad, kStore = AccessKind::kStore;

// c = a bᵀ, one 64 x 64 x 64 tile per program.
template <class T, Lowering Lower>
struct Product {
  using Element = T;
  struct Args {
    Tensor<const T> a, b;
    Tensor<T> c;
    template <class V>
    void operands(V&& visit) {
      visit("a", a), visit("b", b), visit("c", c);
    }
  };
  struct Shared {
    SharedTile<T, 64, 64> a, b, out;
  };
  static constexpr Traits traits{.threads = 128, .lowering = Lower};
  static Grid grid(const Args&) { return {1}; }
  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    p.fetch(s.a[0], a.a, 0, 0, 0);
    p.fetch(s.b[0], a.b, 0, 0, 0);
    p.fetch_wait();
    auto acc = p.accumulator(shape<64, 64>);
    p.dot(acc, s.a[0], trans(s.b[0]));
    p.dot_wait(acc);
    p.store_tile(a.c, 0, 0, 0, acc, s.out);
  }
};

template <class T>
struct Square {
  alignas(64) T a[64 * 64] = {}, b[64 * 64] = {}, c[64 * 64] = {};
  template <class K>
  typename K::Args args(int n) {
    return {matrix_of<const T>(a, n, n), matrix_of<const T>(b, n, n), matrix_of(c, n, n)};
  }
};

TEST(TraceShared, AsyncCopiesAndLdmatrix) {
  using K = Product<bf16, Lowering::kAmpere>;
  Square<bf16> m;
  Trace t;
  trace<K>(m.args<K>(64), t);
  EXPECT_EQ(t.total(AccessKind::kAsyncCopy).requests, 2 * 64 * 64 / 8 / 32);
  EXPECT_EQ(t.total(AccessKind::kAsyncCopy).useful_bytes, 2 * 64 * 64 * 2);
  EXPECT_EQ(t.total(AccessKind::kSharedFill).conflicts, 0);
  // Per warp and k step of 16: one fragment of A, four of B; the swizzle leaves no conflicts.
  EXPECT_EQ(t.total(AccessKind::kSharedLoad).requests, 4 * 4 * (1 + 4));
  EXPECT_EQ(t.total(AccessKind::kSharedLoad).conflicts, 0);
  EXPECT_EQ(t.total(AccessKind::kSharedLoad).wavefronts, 4 * 4 * 5 * 4);
  // Results leave in pairs of columns: 8 rows of 16 bytes per request.
  EXPECT_EQ(t.total(kStore).requests, 64 * 64 / 2 / 32);
  EXPECT_DOUBLE_EQ(t.total(kStore).sectors_per_request(), 8);
  EXPECT_EQ(t.unique_bytes_read(), 2 * 64 * 64 * 2);
  EXPECT_EQ(t.unique_bytes_written(), 64 * 64 * 2);
}

struct CopyArgs {
  Tensor<const bf16> a;
  Tensor<bf16> c;
  template <class V>
  void operands(V&& visit) {
    visit("a", a), visit("c", c);
  }
};

// c = a through a shared tile, read as a rounded accumulator.
template <Lowering Lower, int Cols>
struct CopyThroughShared {
  using Element = bf16;
  using Args = CopyArgs;
  struct Shared {
    SharedTile<bf16, 64, Cols> tile, out;
  };
  static constexpr Traits traits{.threads = 128, .lowering = Lower};
  static Grid grid(const Args&) { return {1}; }
  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    p.fetch(s.tile[0], a.a, 0, 0, 0);
    p.fetch_wait();
    auto x = p.cast(type<bf16>, p.accumulator(shape<64, Cols>));
    p.read(x, s.tile[0]);
    p.store_tile(a.c, 0, 0, 0, x, s.out);
  }

  // Traces it on values that must arrive.
  static Trace traced() {
    alignas(64) bf16 a[64 * Cols], c[64 * Cols] = {};
    for (int i = 0; i < 64 * Cols; ++i) a[i] = from_float<bf16>(float(i % 251));
    Trace t;
    trace<CopyThroughShared>({matrix_of<const bf16>(a, 64, Cols), matrix_of(c, 64, Cols)}, t);
    for (int i = 0; i < 64 * Cols; ++i) EXPECT_EQ(c[i].bits, a[i].bits) << i;
    return t;
  }
};

TEST(TraceShared, ReadsAreFragments) {
  const Trace t = CopyThroughShared<Lowering::kHopper, 64>::traced();
  EXPECT_EQ(t.total(AccessKind::kSharedLoad).requests, 4 * 4);  // ldmatrix: 4 per warp
  EXPECT_EQ(t.total(AccessKind::kSharedLoad).conflicts, 0);
}

// 24 chunks a row neither divide the threads nor are divided by them.
TEST(TraceShared, AsyncCopiesOfAnyWidth) {
  const Trace t = CopyThroughShared<Lowering::kAmpere, 192>::traced();
  EXPECT_EQ(t.total(AccessKind::kAsyncCopy).requests, 64 * 24 / 32);
  EXPECT_EQ(t.total(AccessKind::kAsyncCopy).useful_bytes, 64 * 192 * 2);
  EXPECT_EQ(t.total(AccessKind::kSharedFill).conflicts, 0);
}

// An accumulator set aside and back, then written to both halves of a wider shared tile.
template <Lowering Lower>
struct SavedAndWritten {
  using Element = bf16;
  using Args = CopyArgs;
  struct Shared {
    SavedAccumulators<64, 64, 2> saved;
    SharedTile<bf16, 64, 128> tile;
  };
  static constexpr Traits traits{.threads = 128, .lowering = Lower};
  static Grid grid(const Args&) { return {1}; }
  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    auto acc = p.accumulator(shape<64, 64>);
    acc = p.load(layout_of(acc), a.a, 0, 0);
    p.save(s.saved[1], acc);
    acc = p.accumulator(shape<64, 64>);
    p.save(s.saved[0], acc);
    p.restore(acc, s.saved[1]);
    p.write(s.tile[0], acc, 64);
    acc *= 2.f;
    p.write(s.tile[0], p.cast(type<bf16>, acc), 0);
    p.sync();
    auto both = p.cast(type<bf16>, p.accumulator(shape<64, 128>));
    p.read(both, s.tile[0]);
    p.store_tile(a.c, 0, 0, 0, both, s.tile);
  }

  static Trace traced() {
    alignas(64) bf16 a[64 * 64], c[64 * 128] = {};
    for (int i = 0; i < 64 * 64; ++i) a[i] = from_float<bf16>(float(i % 97));
    Trace t;
    trace<SavedAndWritten>({matrix_of<const bf16>(a, 64, 64), matrix_of(c, 64, 128)}, t);
    for (int i = 0; i < 64 * 64; ++i) {
      EXPECT_EQ(to_float(c[i / 64 * 128 + i % 64]), 2 * to_float(a[i])) << i;
      EXPECT_EQ(to_float(c[i / 64 * 128 + 64 + i % 64]), to_float(a[i])) << i;
    }
    return t;
  }
};

TEST(TraceShared, AccumulatorsAreSavedWithoutConflicts) {
  // Each of 4 warps: 32 registers, four at a time, twice saved, once restored; 4 stmatrix for 64
  // columns, written twice and staged twice; ldmatrix for 128.
  const Trace hopper = SavedAndWritten<Lowering::kHopper>::traced();
  EXPECT_EQ(hopper.total(AccessKind::kSharedStore).requests, 4 * (2 * 8 + 2 * 4 + 2 * 4));
  EXPECT_EQ(hopper.total(AccessKind::kSharedLoad).requests, 4 * (8 + 8));
  EXPECT_EQ(hopper.total(AccessKind::kSharedStore).conflicts, 0);
  EXPECT_EQ(hopper.total(AccessKind::kSharedLoad).conflicts, 0);
  SavedAndWritten<Lowering::kAmpere>::traced();
}

// Pairs of columns, with a and b as the tables.
struct TurnAccumulator : Product<float, Lowering::kAmpere> {
  using Base = Product<float, Lowering::kAmpere>;
  template <class P>
  CRIA_FN static void run(P& p, const Base::Args& a, Base::Shared&) {
    auto acc = p.accumulator(shape<64, 64>);
    p.update_pairs(pairs<32>, acc,
                   [](float& low, float& high, float x, float y) { low = x, high = y; },
                   {a.a, a.b, 0, 60}, {a.c.rows, 64});
    p.store(a.c, acc, 0, 0);
  }
};

TEST(TraceShared, PairsLoadTheirTables) {
  Square<float> m;
  Trace t;
  trace<TurnAccumulator>(m.args<TurnAccumulator>(64), t);
  // 8 rows of 32 bytes per request; the last four rows meet the first of the tables again.
  EXPECT_EQ(t.total(kLoad).requests, 2 * 64 * 32 / 2 / 32);
  EXPECT_DOUBLE_EQ(t.total(kLoad).sectors_per_request(), 8);
  EXPECT_EQ(t.unique_bytes_read(), 2 * 60 * 32 * 4);
  Trace unaligned;
  trace<TurnAccumulator>(m.args<TurnAccumulator>(61), unaligned);
  EXPECT_EQ(unaligned.total(kLoad).requests, 2 * 64 * 32 / 32);
  EXPECT_EQ(unaligned.unique_bytes_read(), 2 * 60 * 32 * 4);
}

TEST(TraceShared, BulkCopies) {
  using K = Product<bf16, Lowering::kHopper>;
  Square<bf16> m;
  Trace t;
  trace<K>(m.args<K>(64), t);
  EXPECT_EQ(t.total(AccessKind::kBulkLoad).requests, 2);
  EXPECT_EQ(t.total(AccessKind::kBulkLoad).sectors, 2 * 64 * 128 / 32);
  EXPECT_EQ(t.total(AccessKind::kBulkStore).requests, 1);
  EXPECT_EQ(t.total(AccessKind::kSharedLoad).requests, 0);
  EXPECT_EQ(t.total(AccessKind::kSharedStore).requests, 4 * 4);  // stmatrix: 4 per warp
  EXPECT_EQ(t.total(AccessKind::kSharedStore).conflicts, 0);
  Trace cut;
  trace<K>(m.args<K>(40), cut);
  EXPECT_EQ(cut.total(AccessKind::kBulkLoad).useful_bytes, 2 * 40 * 40 * 2);
  EXPECT_EQ(cut.unique_bytes_read(), 2 * 40 * 40 * 2);
  EXPECT_EQ(cut.unique_bytes_written(), 40 * 40 * 2);
}

// Rows at whole 16 bytes, of a width that is none: both lowerings fetch and store what is inside.
template <Lowering Lower>
Trace cut_product() {
  using K = Product<bf16, Lower>;
  Square<bf16> m;
  typename K::Args args = m.template args<K>(64);
  args.a.cols = args.a.rows = args.b.cols = args.b.rows = args.c.cols = args.c.rows = 61;
  Trace t;
  trace<K>(args, t);
  EXPECT_EQ(t.unique_bytes_read(), 2 * 61 * 61 * 2);
  EXPECT_EQ(t.unique_bytes_written(), 61 * 61 * 2);
  return t;
}
TEST(TraceShared, ChunksOverTheEdge) {
  const Trace ampere = cut_product<Lowering::kAmpere>();
  EXPECT_EQ(ampere.total(AccessKind::kAsyncCopy).requests, 2 * 64 * 64 / 8 / 32);
  EXPECT_EQ(ampere.total(AccessKind::kAsyncCopy).useful_bytes, 2 * 61 * 61 * 2);
  // Pairs of columns, and the last column alone: a request of the two rows' strips of each warp.
  EXPECT_EQ(ampere.total(kStore).requests, 64 * 64 / 2 / 32 + 4 * 2);
  const Trace hopper = cut_product<Lowering::kHopper>();
  EXPECT_EQ(hopper.total(AccessKind::kBulkLoad).useful_bytes, 2 * 61 * 61 * 2);
  EXPECT_EQ(hopper.total(AccessKind::kBulkStore).useful_bytes, 61 * 61 * 2);
}

TEST(TraceShared, UnalignedFetchesGoElementByElement) {
  using K = Product<bf16, Lowering::kAmpere>;
  Square<bf16> m;
  Trace t;
  trace<K>(m.args<K>(61), t);
  EXPECT_EQ(t.total(AccessKind::kAsyncCopy).requests, 0);
  EXPECT_EQ(t.unique_bytes_read(), 2 * 61 * 61 * 2);
  EXPECT_EQ(t.unique_bytes_written(), 61 * 61 * 2);
}

}  // namespace
}  // namespace cria::tile
