// What the tracer counts for loads, stores and what goes through shared memory between threads, in
// kernels whose requests, sectors and conflicts are known by hand.
#define CRIA_TARGET_TRACE 1
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "base/dtype.h"
#include "base/tensor.h"
#include "tile/target.h"

namespace cria::tile {
namespace {

constexpr AccessKind kLoad = AccessKind::kLoad, kStore = AccessKind::kStore;

template <class T>
struct CopyArgs {
  Tensor<const T> x;
  Tensor<T> y;
  template <class V>
  void operands(V&& visit) {
    visit("x", x), visit("y", y);
  }
};

// y = x + 1, one row per program. Layout: void for the program's own.
template <class T, int N, int Threads, class Layout = void>
struct CopyRows {
  using Element = T;
  using Args = CopyArgs<T>;
  static constexpr Traits traits{.threads = Threads};
  static Grid grid(const Args& a) { return {a.x.rows}; }
  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    auto i = p.arange(shape<N>);
    auto inside = i < a.x.cols;
    const int r = p.program_id(0);
    if constexpr (std::is_void_v<Layout>)
      p.store(a.y.row(r), i, p.load(a.x.row(r), i, inside) + 1.f, inside);
    else
      p.store(a.y.row(r), i, p.load(Layout{}, a.x.row(r), i, inside) + 1.f, inside);
  }
};

template <class T>
class Matrices {
 public:
  Matrices(int rows, int cols)
      : rows_(rows), cols_(cols), x_(size_t(rows) * cols + 16), y_(size_t(rows) * cols + 16) {}
  CopyArgs<T> args(int shift = 0) {
    return {matrix_of<const T>(start(x_) + shift, rows_, cols_),
            matrix_of(start(y_) + shift, rows_, cols_)};
  }

 private:
  static T* start(std::vector<T>& v) {  // the first element on a 32-byte boundary
    auto address = reinterpret_cast<uintptr_t>(v.data());
    return v.data() + (32 - address % 32) % 32 / sizeof(T);
  }
  int rows_, cols_;
  std::vector<T> x_, y_;
};

TEST(TraceCounts, CoalescedVectors) {
  Trace t;
  Matrices<float> m(3, 1024);
  trace<CopyRows<float, 1024, 128>>(m.args(), t);
  const AccessCounts loads = t.total(kLoad), stores = t.total(kStore);
  EXPECT_EQ(loads.requests, 3 * 1024 / 4 / 32);
  EXPECT_DOUBLE_EQ(loads.sectors_per_request(), 16);
  EXPECT_DOUBLE_EQ(loads.useful_bytes_per_sector(), 32);
  EXPECT_EQ(stores.requests, loads.requests);
  EXPECT_EQ(stores.sectors, loads.sectors);
  EXPECT_EQ(t.unique_bytes_read(), 3 * 4096);
  EXPECT_EQ(t.unique_bytes_written(), 3 * 4096);
}

TEST(TraceCounts, SixteenBitVectorsHoldEight) {
  Trace t;
  Matrices<bf16> m(2, 2048);
  trace<CopyRows<bf16, 2048, 256>>(m.args(), t);
  EXPECT_EQ(t.total(kLoad).requests, 2 * 2048 / 8 / 32);
  EXPECT_DOUBLE_EQ(t.total(kLoad).sectors_per_request(), 16);
}

// Rows that begin anywhere: element by element, in the same layout.
TEST(TraceCounts, UnalignedOperandsLoseTheirVectors) {
  Trace t;
  Matrices<float> m(2, 1023);
  trace<CopyRows<float, 1024, 128>>(m.args(), t);
  EXPECT_EQ(t.total(kLoad).requests, 2 * 1024 / 32);
  EXPECT_GE(t.total(kLoad).sectors, 2 * 1024 / 32 * 16);
  EXPECT_EQ(t.unique_bytes_read(), 2 * 1023 * 4);
  Trace shifted;
  Matrices<float> n(1, 1024);
  trace<CopyRows<float, 1024, 128>>(n.args(1), shifted);
  EXPECT_EQ(shifted.total(kLoad).requests, 1024 / 32);
}

// Rows that begin at whole 16 bytes, of any width: the vector over the edge is loaded whole, of
// which what is inside counts, and stored element by element.
template <class T>
void expect_cut(int cols, int per_vector) {
  constexpr int kRows = 3;
  const int64_t ld = pitch_of(cols), bytes = int64_t{kRows} * cols * sizeof(T);
  const int vectors = ceil_div(cols, per_vector), cut = cols % per_vector;
  Matrices<T> m(kRows, static_cast<int>(ld));
  CopyArgs<T> args = m.args();
  args.x.cols = args.y.cols = cols;
  Trace t;
  trace<CopyRows<T, 1024, 128>>(args, t);
  EXPECT_EQ(t.total(kLoad).requests, kRows * ceil_div(vectors, 32));
  EXPECT_EQ(t.total(kLoad).useful_bytes, bytes);
  EXPECT_EQ(t.total(kLoad).requested_bytes, bytes);
  EXPECT_EQ(t.unique_bytes_read(), bytes);
  EXPECT_EQ(t.total(kStore).requests, kRows * (ceil_div(cols / per_vector, 32) + cut));
  EXPECT_EQ(t.total(kStore).useful_bytes, bytes);
  EXPECT_EQ(t.unique_bytes_written(), bytes);
}
TEST(TraceCounts, VectorsOverTheEdge) {
  for (const int cols : {1, 3, 4, 5, 126, 127, 128, 129, 1021, 1023, 1024}) {
    SCOPED_TRACE(cols);
    expect_cut<float>(cols, 4);
  }
  for (const int cols : {1, 7, 8, 9, 255, 256, 257, 1017, 1023, 1024}) {
    SCOPED_TRACE(cols);
    expect_cut<bf16>(cols, 8);
  }
}

// An operand that is not there does not decide, nor does the distance of rows in one row.
TEST(TraceCounts, WhatIsNotSteppedOverDoesNotDecide) {
  Matrices<float> m(4, 1024);
  const auto access = [&](auto change) {
    CopyArgs<float> args = m.args();
    change(args);
    return access_of(args);
  };
  EXPECT_EQ(access([](auto&) {}), Access::kVectors);
  EXPECT_EQ(access([](auto& a) { a.x.cols = 1023; }), Access::kCutVectors);
  EXPECT_EQ(access([](auto& a) { a.x.ld = 1023; }), Access::kElements);
  EXPECT_EQ(access([](auto& a) { a.x.ld = 1023, a.x.rows = 1; }), Access::kVectors);
  EXPECT_EQ(access([](auto& a) { a.x.data += 1; }), Access::kElements);
  EXPECT_EQ(access([](auto& a) { a.x.data += 1, a.x.rows = 0; }), Access::kVectors);
  EXPECT_EQ(access([](auto& a) { a.x = {}; }), Access::kVectors);
  EXPECT_EQ(access([](auto& a) { a.x.batch = 2, a.x.batch_stride = 2046; }), Access::kElements);
  EXPECT_EQ(access([](auto& a) { a.x.heads = a.x.batch = 2, a.x.head_stride = 6; }),
            Access::kElements);
}

TEST(TraceCounts, RunsAreNotCoalesced) {
  Trace t;
  Matrices<float> m(1, 4096);
  trace<CopyRows<float, 4096, 128, Runs<4096, 128>>>(m.args(), t);
  EXPECT_EQ(t.total(kLoad).requests, 4096 / 32);
  EXPECT_DOUBLE_EQ(t.total(kLoad).sectors_per_request(), 32);
  EXPECT_DOUBLE_EQ(t.total(kLoad).useful_bytes_per_sector(), 4);
}

TEST(TraceCounts, MaskedLanesAndEmptyRequests) {
  Trace t;
  Matrices<float> m(1, 40);  // of 1024: lanes 0 to 9 of the first warp
  trace<CopyRows<float, 1024, 128>>(m.args(), t);
  EXPECT_EQ(t.total(kLoad).requests, 1);
  EXPECT_EQ(t.total(kLoad).sectors, 5);
  EXPECT_EQ(t.total(kLoad).requested_bytes, 160);
  Trace none;
  Matrices<float> empty(1, 0);
  trace<CopyRows<float, 1024, 128>>(empty.args(), none);
  EXPECT_EQ(none.total(kLoad).requests, 0);
}

TEST(TraceCounts, LinesAndOperandsAreToldApart) {
  Trace t;
  Matrices<float> m(1, 1024);
  trace<CopyRows<float, 1024, 128>>(m.args(), t);
  const auto lines = t.lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].file, "counts_trace_test.cpp");
  EXPECT_EQ(t.operands()[lines[0].operand].name, "x");
  EXPECT_EQ(t.operands()[lines[1].operand].name, "y");
  EXPECT_EQ(t.total(kLoad, 0).requests, 8);
  EXPECT_EQ(t.total(kLoad, 1).requests, 0);
}

TEST(TraceCounts, ASubsetOfPrograms) {
  Trace t({.first_program = 5, .program_limit = 2});
  Matrices<float> m(10, 1024);
  trace<CopyRows<float, 1024, 128>>(m.args(), t);
  EXPECT_EQ(t.total(kLoad).requests, 2 * 8);
  Trace beyond({.first_program = 20});
  trace<CopyRows<float, 1024, 128>>(m.args(), beyond);
  EXPECT_EQ(beyond.total(kLoad).requests, 0);
}

struct HalvesArgs {
  static constexpr const char* kernel = "double_halves";
  Tensor<bf16> high;
  Tensor<int16_t> low;
  template <class V>
  void operands(V&& visit) {
    visit("high", high), visit("low", low);
  }
};

// x = 2 x
struct DoubleHalves {
  using Element = float;
  using Args = HalvesArgs;
  static constexpr Traits traits{.threads = 128};
  static Grid grid(const Args&) { return {1}; }
  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    auto i = p.arange(shape<1024>);
    auto inside = i < a.high.cols;
    auto x = p.load_split(a.high.data, a.low.data, i, inside);
    p.store_split(a.high.data, a.low.data, i, x * 2.f, inside);
  }
};

TEST(TraceCounts, HalvesAreTwoArrays) {
  constexpr int kN = 1000;
  alignas(32) bf16 high[kN];
  alignas(32) int16_t low[kN];
  for (int i = 0; i < kN; ++i) {
    const float x = 1.f / (i + 1);
    high[i] = high_half(x), low[i] = low_half(x);
  }
  Trace t;
  trace<DoubleHalves>({vector_of(high, kN), vector_of(low, kN)}, t);
  for (const int operand : {0, 1})
    for (const AccessKind kind : {kLoad, kStore}) {
      EXPECT_EQ(t.total(kind, operand).requests, 1024 / 4 / 32);
      EXPECT_DOUBLE_EQ(t.total(kind, operand).useful_bytes_per_sector(), 2000.0 / (63 * 32) * 32);
    }
  EXPECT_EQ(t.unique_bytes_read(), 4 * kN);
  EXPECT_EQ(t.unique_bytes_written(), 4 * kN);
  for (int i = 0; i < kN; ++i) ASSERT_EQ(join_halves(to_float(high[i]), low[i]), 2.f / (i + 1));
}

TEST(TraceCounts, BothHalvesHaveBounds) {
  alignas(32) bf16 high[128] = {};
  alignas(32) int16_t low[128] = {};
  Trace t;
  try {
    trace<DoubleHalves>({vector_of(high, 128), vector_of(low, 120)}, t);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("a load of operand low[0, 0, 120]"), std::string::npos)
        << e.what();
  }
}

// b = aᵀ by 32 x 32 tiles. P < 0: straight to memory.
template <int P, int Vec = 1>
struct Transpose {
  using Element = float;
  using Args = CopyArgs<float>;
  static constexpr int vec = Vec;
  static constexpr Traits traits{.threads = 256};
  static Grid grid(const Args& a) { return {a.x.cols / 32, a.x.rows / 32}; }
  template <class P_>
  CRIA_FN static void run(P_& p, const Args& a) {
    auto i = column(p.arange(shape<32>));
    auto k = row(p.arange(shape<32>));
    const int r0 = p.program_id(1) * 32, c0 = p.program_id(0) * 32;
    auto tile = p.load(a.x, shape<32, 32>, r0, c0);
    if constexpr (P < 0)
      p.store(a.y.at(0, c0, r0), i + k * a.y.ld, tile);
    else
      p.store(a.y, p.trans(tile, pad<P>), c0, r0);
  }
};

TEST(TraceCounts, TransposeLadder) {
  std::vector<float> x(64 * 96), y(64 * 96);
  std::iota(x.begin(), x.end(), 0.f);
  const CopyArgs<float> args{matrix_of<const float>(x.data(), 64, 96), matrix_of(y.data(), 96, 64)};
  constexpr int kTiles = 6, kRequests = kTiles * 1024 / 32;

  Trace naive;
  trace<Transpose<-1>>(args, naive);
  EXPECT_DOUBLE_EQ(naive.total(kStore).sectors_per_request(), 32);
  EXPECT_LT(naive.total(kLoad).sectors_per_request(), 6);
  for (int r = 0; r < 64; ++r)
    for (int c = 0; c < 96; ++c) ASSERT_EQ(y[c * 64 + r], x[r * 96 + c]);

  Trace unpadded;
  trace<Transpose<0>>(args, unpadded);
  EXPECT_EQ(unpadded.total(AccessKind::kSharedStore).requests, kRequests);
  EXPECT_EQ(unpadded.total(AccessKind::kSharedStore).conflicts, kRequests * 31);
  EXPECT_EQ(unpadded.total(AccessKind::kSharedLoad).conflicts, 0);

  Trace padded;
  trace<Transpose<1>>(args, padded);
  EXPECT_EQ(padded.total(AccessKind::kSharedStore).requests, kRequests);
  EXPECT_EQ(padded.total(AccessKind::kSharedStore).conflicts, 0);
  EXPECT_EQ(padded.total(AccessKind::kSharedLoad).conflicts, 0);
  EXPECT_LT(padded.total(kStore).sectors_per_request(), 6);
}

// Reductions: one value per warp through shared memory, columns through an array of partial
// columns.
struct Reductions {
  using Element = float;
  using Args = CopyArgs<float>;
  static constexpr Traits traits{.threads = 128};
  static Grid grid(const Args&) { return {1}; }
  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    auto tile = p.keep(p.load(a.x, shape<16, 512>, 0, 0));
    const float whole = p.sum(tile);
    auto rows = p.max(tile, axis<1>);
    auto cols = p.sum(tile, axis<0>);
    p.store(a.y, tile * whole + rows + cols, 0, 0);
  }
};

TEST(TraceCounts, ReductionsAcrossWarps) {
  Trace t;
  Matrices<float> m(16, 512);
  trace<Reductions>(m.args(), t);
  // 4 warps: whole 4 stores + 4 loads; rows: 16 values each; a column is one thread's alone.
  EXPECT_EQ(t.total(AccessKind::kSharedStore).requests, 4 + 16 * 4);
  EXPECT_EQ(t.total(AccessKind::kSharedLoad).requests, 4 + 16 * 4);
  EXPECT_EQ(t.total(AccessKind::kSharedLoad).conflicts, 0);
}

}  // namespace
}  // namespace cria::tile
