// Loads and stores: masks at their edges, types, strides, blocks of tensors, gather and scatter,
// floats in halves.
#define CRIA_TARGET_CPU 1
#include <gtest/gtest.h>

#include <cmath>

#include "base/tensor.h"
#include "support/guarded.h"
#include "tile/host_program.h"

namespace cria::tile {
namespace {

using cria::test::Guarded;
using test::Bare;
using test::random_values;
using test::with_program;

template <class T>
class CpuMemory : public testing::Test {};
using Types = testing::Types<float, bf16, f16>;
TYPED_TEST_SUITE(CpuMemory, Types);

TYPED_TEST(CpuMemory, MasksCutLoadsAndStores) {
  using T = TypeParam;
  constexpr int kBlock = 1024;
  for (int n : {0, 1, 2, 15, 16, 17, 63, 500, kBlock - 1, kBlock}) {
    with_program<Bare<T>>([&](auto& p) {
      const std::vector<T> values = random_values<T>(n, n);
      Guarded<T> x{std::span<const T>(values)}, y(n), z(n);
      auto i = p.arange(shape<kBlock>);
      auto lazy = p.load(x.data(), i, i < n, -3.f);
      auto kept = p.keep(lazy);
      for (int e = 0; e < kBlock; ++e)
        ASSERT_EQ(kept.v[e], e < n ? to_float(values[e]) : -3.f) << n << " at " << e;
      p.store(y.data(), i, lazy, i < n);
      p.store(z.data(), i, kept, i < n);
      for (int e = 0; e < n; ++e) {
        ASSERT_EQ(to_float(y[e]), to_float(values[e]));
        ASSERT_EQ(to_float(z[e]), to_float(values[e]));
      }
      y.check("y");
      z.check("z");
    });
  }
}

TYPED_TEST(CpuMemory, PackedLoadsAndMappedStoresAreLoadsAndStores) {
  using T = TypeParam;
  constexpr int kBlock = 256;
  for (int n : {0, 1, 100, kBlock})
    with_program<Bare<T>>([&](auto& p) {
      const std::vector<T> values = random_values<T>(n, n);
      Guarded<T> y(n);
      auto i = p.arange(shape<kBlock>);
      auto x = p.load_packed(values.data(), i, i < n, -kInfinity);
      float most = -kInfinity;
      for (const T v : values) most = std::max(most, to_float(v));
      ASSERT_EQ(p.max(x), most);
      p.store_mapped(
          y.data(), i, [](float v) { return 2 * v + 1; }, x, i < n);
      for (int e = 0; e < n; ++e)
        ASSERT_EQ(to_float(y[e]), to_float(from_float<T>(2 * to_float(values[e]) + 1)));
      y.check("y");
    });
}

// Loads of different lengths meet: each is masked by its own bound.
TYPED_TEST(CpuMemory, EveryLoadHasItsOwnMask) {
  using T = TypeParam;
  constexpr int kBlock = 256;
  const std::vector<T> values = random_values<T>(kBlock, 11);
  for (int n : {0, 7, 200})
    for (int m : {0, 33, kBlock})
      with_program<Bare<T>>([&](auto& p) {
        auto i = p.arange(shape<kBlock>);
        auto sum = p.keep(p.load(values.data(), i, i < n, 100.f) + p.load(values.data(), i, i < m));
        for (int e = 0; e < kBlock; ++e) {
          const float v = to_float(values[e]);
          ASSERT_EQ(sum.v[e], (e < n ? v : 100.f) + (e < m ? v : 0.f)) << n << " " << m << " " << e;
        }
      });
}

TYPED_TEST(CpuMemory, StoresRoundToNearestEven) {
  using T = TypeParam;
  constexpr int kBlock = 512;
  with_program<Bare<T>>([&](auto& p) {
    std::vector<float> x = random_values(kBlock, 12, 70000.f);
    x[0] = 0x1.01p0f, x[1] = 0x1.03p0f, x[2] = INFINITY, x[3] = -INFINITY, x[4] = NAN, x[5] = 1e-7f;
    std::vector<T> y(kBlock);
    auto i = p.arange(shape<kBlock>);
    p.store(y.data(), i, p.load(x.data(), i));
    for (int e = 0; e < kBlock; ++e) {
      const float want = to_float(from_float<T>(x[e])), got = to_float(y[e]);
      ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << e << ": " << got;
    }
  });
}

// A block hanging over the tensor's edges, in every corner.
TYPED_TEST(CpuMemory, BlocksAreClippedToTheTensor) {
  using T = TypeParam;
  constexpr int kRows = 21, kCols = 45, kLd = 50, kBatch = 2;
  const std::vector<T> values = random_values<T>(kBatch * kRows * kLd, 13);
  for (int r0 : {0, 8, 16, 24})
    for (int c0 : {0, 32, 64})
      with_program<Bare<T>>([&](auto& p) {
        Guarded<T> y(values.size());
        const Tensor<const T> x{values.data(), kBatch, kRows, kCols, kLd, kRows * kLd};
        const Tensor<T> out{y.data(), kBatch, kRows, kCols, kLd, kRows * kLd};
        auto tile = p.load(x, shape<16, 32>, r0, c0, 1);
        auto kept = p.keep(tile);
        p.store(out, tile * 2.f, r0, c0, 1);
        for (int r = 0; r < 16; ++r)
          for (int c = 0; c < 32; ++c) {
            const bool inside = r0 + r < kRows && c0 + c < kCols;
            const float want = inside ? to_float(*x.at(1, r0 + r, c0 + c)) : 0.f;
            ASSERT_EQ(kept.v[r * 32 + c], want);
            if (inside) {
              ASSERT_EQ(to_float(*out.at(1, r0 + r, c0 + c)), to_float(from_float<T>(want * 2.f)));
            }
          }
        int written = 0;
        for (const T& v : y) written += !std::isnan(to_float(v));
        const int rows = std::clamp(kRows - r0, 0, 16), cols = std::clamp(kCols - c0, 0, 32);
        EXPECT_EQ(written, rows * cols);
        y.check("y");
      });
}

TEST(CpuMemoryPlain, TransposedOffsets) {
  with_program([](auto& p) {
    constexpr int kRows = 19, kCols = 30;
    std::vector<float> x = random_values(kRows * kCols, 14);
    Guarded<float> y(kRows * kCols);
    auto i = column(p.arange(shape<32>));
    auto k = row(p.arange(shape<32>));
    auto inside = i < kRows && k < kCols;
    p.store(y.data(), i + k * kRows, p.load(x.data(), i * kCols + k, inside), inside);
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kCols; ++c) ASSERT_EQ(y[c * kRows + r], x[r * kCols + c]);
    y.check("y");
  });
}

TEST(CpuMemoryPlain, LayoutOverrideAndScalars) {
  with_program([](auto& p) {
    std::vector<float> x = random_values(256, 15);
    auto tile = p.load(Runs<256, 128>{}, x.data(), p.arange(shape<256>));
    static_assert(std::is_same_v<typename decltype(tile)::Layout, Runs<256, 128>>);
    EXPECT_EQ(p.keep(tile).v[200], x[200]);
    EXPECT_EQ(p.load(x.data() + 3), x[3]);
    p.store(x.data() + 3, 8.f);
    EXPECT_EQ(x[3], 8.f);
    auto fresh = p.keep(p.load_fresh(x.data(), p.arange(shape<128>) + 1));
    EXPECT_EQ(fresh.v[2], 8.f);
  });
}

TEST(CpuMemoryPlain, AddBlockAddsWhatLiesInside) {
  with_program([](auto& p) {
    std::vector<float> x = random_values(20 * 40, 16);
    auto acc = p.accumulator(shape<64, 64>);
    acc += 1.f;
    p.add_block(acc, matrix_of<const float>(x.data(), 20, 40), 10, 8);
    for (int r = 0; r < 64; ++r)
      for (int c = 0; c < 64; ++c)
        ASSERT_EQ(acc.v[r * 64 + c], 1.f + (r < 10 && c < 32 ? x[(r + 10) * 40 + c + 8] : 0.f));
  });
}

TEST(CpuMemoryPlain, PairsMeetTheirRowsOfTheTables) {
  with_program([](auto& p) {
    const std::vector<float> x = random_values(9 * 20, 19), y = random_values(9 * 20, 20);
    const PairTables tables{matrix_of(x.data(), 9, 16, 20), matrix_of(y.data(), 9, 16, 20), 5, 9};
    auto acc = p.accumulator(shape<64, 96>);
    for (int i = 0; i < 64 * 96; ++i) acc.v[i] = float(i);
    const auto f = [](float& low, float& high, float x, float y) {
      const float a = low;
      low = a * x + high, high = a - high * y;
    };
    p.update_pairs(pairs<16>, acc, f, tables, {50, 64});
    for (int r = 0; r < 64; ++r)
      for (int c = 0; c < 96; c += 32)
        for (int i = 0; i < 16; ++i) {
          const int low = r * 96 + c + i, at = (r + 5) % 9 * 20 + i;
          float a = float(low), b = float(low + 16);
          if (r < 50 && c < 64) f(a, b, x[at], y[at]);
          ASSERT_EQ(acc.v[low], a) << r << " " << c + i;
          ASSERT_EQ(acc.v[low + 16], b) << r << " " << c + i + 16;
        }
  });
}

TEST(CpuMemoryPlain, GatherAndScatter) {
  constexpr int kN = 256;
  with_program([](auto& p) {
    std::vector<float> x = random_values(kN, 17), y(kN, -1.f);
    std::vector<int32_t> at(kN);
    for (int e = 0; e < kN; ++e) at[e] = (e * 7) % kN;
    auto i = p.arange(shape<kN>);
    auto index = p.load(at.data(), i, i < 200);
    auto picked = p.keep(p.gather(x.data(), index, i < 200, 9.f));
    for (int e = 0; e < kN; ++e) ASSERT_EQ(picked.v[e], e < 200 ? x[at[e]] : 9.f) << e;
    p.scatter(y.data(), index, picked, i < 150);
    for (int e = 0; e < 150; ++e) ASSERT_EQ(y[at[e]], x[at[e]]);
    EXPECT_EQ(std::count(y.begin(), y.end(), -1.f), kN - 150);
  });
}

TEST(CpuMemoryPlain, ShortIntegers) {
  constexpr int kBlock = 256;
  for (int n : {0, 1, 33, kBlock})
    with_program([n](auto& p) {
      std::vector<int16_t> x(n);
      for (int e = 0; e < n; ++e) x[e] = int16_t(e * 257 - 0x8000);
      Guarded<int16_t> y(n);
      auto i = p.arange(shape<kBlock>);
      auto lazy = p.load(x.data(), i, i < n, -7);
      auto kept = p.keep(lazy);
      for (int e = 0; e < kBlock; ++e) ASSERT_EQ(kept.v[e], e < n ? x[e] : -7) << n << " at " << e;
      p.store(y.data(), i, lazy, i < n);
      for (int e = 0; e < n; ++e) ASSERT_EQ(y[e], x[e]);
      y.check("y");
    });
}

TEST(CpuMemoryPlain, HalvesKeepEveryBit) {
  constexpr int kBlock = 256;
  for (int n : {0, 1, 17, 100, kBlock})
    with_program([n](auto& p) {
      std::vector<float> x = random_values(kBlock, 21);
      x[0] = -0x1.01p0f, x[1] = 0x1.03p0f, x[2] = 0x1.fffffep127f, x[3] = -INFINITY;
      x[4] = -0.f, x[5] = 0x1p-149f, x[6] = 0x1.7fff0p-1f;
      Guarded<bf16> high(n);
      Guarded<int16_t> low(n);
      auto i = p.arange(shape<kBlock>);
      p.store_split(high.data(), low.data(), i, p.load(x.data(), i), i < n);
      auto back = p.keep(p.load_split(high.data(), low.data(), i, i < n));
      for (int e = 0; e < kBlock; ++e) {
        const float want = e < n ? x[e] : 0.f;
        ASSERT_EQ(std::bit_cast<uint32_t>(back.v[e]), std::bit_cast<uint32_t>(want)) << e;
        if (e < n) {
          ASSERT_EQ(high[e].bits, high_half(x[e]).bits) << e;
        }
      }
      // In place, without keep: both halves are read before either is written.
      auto w = p.load_split(high.data(), low.data(), i, i < n);
      p.store_split(high.data(), low.data(), i, w * 1.37f, i < n);
      for (int e = 0; e < n; ++e) ASSERT_EQ(join_halves(to_float(high[e]), low[e]), x[e] * 1.37f);
      high.check("high");
      low.check("low");
    });
}

TEST(CpuMemoryPlain, HalvesOfATransposedBlock) {
  with_program([](auto& p) {
    constexpr int kRows = 13, kCols = 30;
    const std::vector<float> x = random_values(kRows * kCols, 22);
    Guarded<bf16> high(kRows * kCols);
    Guarded<int16_t> low(kRows * kCols);
    auto i = column(p.arange(shape<16>));
    auto k = row(p.arange(shape<32>));
    auto inside = i < kRows && k < kCols;
    p.store_split(high.data(), low.data(), i + k * kRows, p.load(x.data(), i * kCols + k, inside),
                  inside);
    auto back = p.keep(p.load_split(high.data(), low.data(), i + k * kRows, inside));
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kCols; ++c) ASSERT_EQ(back.v[r * 32 + c], x[r * kCols + c]);
    high.check("high");
    low.check("low");
  });
}

// A grid this large writes past the caches; the result is the same.
TYPED_TEST(CpuMemory, StreamedStoresAreStores) {
  using T = TypeParam;
  constexpr int kBlock = 1024;
  with_program<Bare<T>>(
      [](auto& p) {
        for (int shift : {0, 1, 16})
          for (int n : {kBlock, kBlock - 1, 100}) {
            const std::vector<T> values = random_values<T>(kBlock, 18);
            Guarded<T> y(n + shift);
            auto i = p.arange(shape<kBlock>);
            p.store(y.data() + shift, i, p.load(values.data(), i, i < n), i < n);
            for (int e = 0; e < n; ++e) ASSERT_EQ(to_float(y[shift + e]), to_float(values[e]));
            y.check("y");
          }
      },
      Grid{1 << 20});
}

}  // namespace
}  // namespace cria::tile
