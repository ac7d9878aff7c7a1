// dot against double: all operand forms, types, tails, accumulate and overwrite.
#define CRIA_TARGET_CPU 1
#include <gtest/gtest.h>

#include "base/tensor.h"
#include "runtime/thread_pool.h"
#include "support/compare.h"
#include "tile/host_program.h"

namespace cria::tile {
namespace {

using test::random_values;

enum class From { kFetched, kWritten, kRegisters };

// c (M x N block at the origin) = init + rounds * op(a) op(b); a and b may end inside the block.
template <class T, int M, int N, int K, bool TransA, bool TransB, From FromA, From FromB>
struct OneProduct {
  using Element = T;
  struct Args {
    Tensor<const T> a, b;
    Tensor<float> c;
    bool overwrites = false;
    int rounds = 1;
  };
  struct Shared {
    SharedTile<T, TransA ? K : M, TransA ? M : K> a;
    SharedTile<T, TransB ? N : K, TransB ? K : N> b;
  };
  static constexpr Traits traits{.threads = M * 2};
  static Grid grid(const Args&) { return {1}; }

  template <bool Transpose, class V>
  CRIA_FN static auto op(V v) {
    if constexpr (Transpose)
      return trans(v);
    else
      return v;
  }
  template <From Source, class P, class Tile>
  CRIA_FN static void fill(P& p, const Tile& tile, const Tensor<const T>& from) {
    p.fetch(tile[0], from, 0, 0, 0);
    p.fetch_wait();
    if constexpr (Source == From::kWritten) {
      p.write(tile[0], p.read(tile[0]));
      p.sync();
    }
  }
  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    auto acc = p.accumulator(shape<M, N>);
    acc += 1.f;
    fill<FromA>(p, s.a, a.a);
    fill<FromB>(p, s.b, a.b);
    for (int i = 0; i < a.rounds; ++i) {
      if constexpr (FromA == From::kRegisters)
        multiply(p, acc, p.cast(type<T>, p.load(Mma<M, K, M / 16>{}, a.a, 0, 0)),
                 op<TransB>(s.b[0]), a.overwrites);
      else
        multiply(p, acc, op<TransA>(s.a[0]), op<TransB>(s.b[0]), a.overwrites);
    }
    p.dot_wait(acc);
    p.store_tile(a.c, 0, 0, 0, acc, s.a);
  }
  template <class P, class Acc, class A, class B>
  CRIA_FN static void multiply(P& p, Acc& acc, const A& a, const B& b, bool overwrites) {
    if (overwrites)
      p.dot(acc, a, b, overwrite);
    else
      p.dot(acc, a, b);
  }
};

// m, n, k: the part of the block that lies inside the operands.
template <class T, int M, int N, int K, bool TransA, bool TransB, From FromA, From FromB>
void expect_product(int m, int n, int k, bool overwrites = false, int rounds = 1) {
  using Kernel = OneProduct<T, M, N, K, TransA, TransB, FromA, FromB>;
  const int ld_a = (TransA ? m : k) + 3, ld_b = (TransB ? k : n) + 1;
  const auto a = random_values<T>(static_cast<size_t>(TransA ? k : m) * ld_a, 1);
  const auto b = random_values<T>(static_cast<size_t>(TransB ? n : k) * ld_b, 2);
  std::vector<float> c(M * N, -7.f);
  ThreadPool pool(1);
  launch<Kernel>(pool, {matrix_of(a.data(), TransA ? k : m, TransA ? m : k, ld_a),
                        matrix_of(b.data(), TransB ? n : k, TransB ? k : n, ld_b),
                        matrix_of(c.data(), M, N), overwrites, rounds});
  std::vector<double> want(M * N);
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      double sum = 0;
      for (int e = 0; e < k && i < m && j < n; ++e)
        sum += double{to_float(a[TransA ? e * ld_a + i : i * ld_a + e])} *
               to_float(b[TransB ? j * ld_b + e : e * ld_b + j]);
      want[i * N + j] = overwrites ? sum : 1 + rounds * sum;
    }
  cria::test::expect_close(c, want, {.length = K * rounds, .norm = 1.0 * K * rounds}, "c", N);
}

template <class T>
class CpuDot : public testing::Test {};
using Types = testing::Types<float, bf16, f16>;
TYPED_TEST_SUITE(CpuDot, Types);

template <class T, bool TransA, bool TransB, From FromA, From FromB>
void expect_tails() {
  expect_product<T, 64, 64, 64, TransA, TransB, FromA, FromB>(64, 64, 64);
  expect_product<T, 64, 64, 64, TransA, TransB, FromA, FromB>(64, 64, 64, true);
  expect_product<T, 64, 64, 64, TransA, TransB, FromA, FromB>(63, 61, 57, false, 3);
  expect_product<T, 64, 64, 64, TransA, TransB, FromA, FromB>(1, 1, 1);
  expect_product<T, 64, 64, 64, TransA, TransB, FromA, FromB>(17, 33, 64, true);
  expect_product<T, 64, 64, 64, TransA, TransB, FromA, FromB>(5, 64, 2, true);
}

TYPED_TEST(CpuDot, FetchedOperands) {
  expect_tails<TypeParam, false, false, From::kFetched, From::kFetched>();
  expect_tails<TypeParam, false, true, From::kFetched, From::kFetched>();
  expect_tails<TypeParam, true, false, From::kFetched, From::kFetched>();
  expect_tails<TypeParam, true, true, From::kFetched, From::kFetched>();
}

TYPED_TEST(CpuDot, WrittenOperands) {
  expect_tails<TypeParam, false, false, From::kWritten, From::kWritten>();
  expect_tails<TypeParam, false, true, From::kFetched, From::kWritten>();
  expect_tails<TypeParam, true, false, From::kWritten, From::kFetched>();
  expect_tails<TypeParam, true, true, From::kWritten, From::kWritten>();
}

TYPED_TEST(CpuDot, RegisterOperand) {
  expect_tails<TypeParam, false, false, From::kRegisters, From::kFetched>();
  expect_tails<TypeParam, false, true, From::kRegisters, From::kWritten>();
}

TYPED_TEST(CpuDot, OtherShapes) {
  using T = TypeParam;
  constexpr From kF = From::kFetched;
  expect_product<T, 16, 128, 64, false, false, kF, kF>(16, 128, 64);
  expect_product<T, 128, 192, 64, false, true, kF, kF>(128, 192, 64);
  expect_product<T, 32, 64, 256, false, true, kF, kF>(31, 63, 255);
  expect_product<T, 64, 64, 128, true, false, kF, kF>(64, 64, 100);
}

// One tile used both ways, as attention's backward pass uses k: neither use may spoil the other.
template <class T>
struct BothWays {
  using Element = T;
  struct Args {
    Tensor<const T> a;
    Tensor<float> c, d;
  };
  struct Shared {
    SharedTile<T, 64, 64> a;
  };
  static constexpr Traits traits{.threads = 128};
  static Grid grid(const Args&) { return {1}; }
  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    auto c = p.accumulator(shape<64, 64>), d = p.accumulator(shape<64, 64>);
    p.fetch(s.a[0], a.a, 0, 0, 0);
    p.fetch_wait();
    for (int i = 0; i < 2; ++i) {
      p.dot(c, s.a[0], trans(s.a[0]));  // a aᵀ
      p.dot(d, trans(s.a[0]), s.a[0]);  // aᵀ a
    }
    p.store(a.c, c, 0, 0);
    p.store(a.d, d, 0, 0);
  }
};

TYPED_TEST(CpuDot, OneTileBothWays) {
  using T = TypeParam;
  for (int n : {64, 50}) {
    const auto a = random_values<T>(n * n, 5);
    std::vector<float> c(64 * 64), d(64 * 64);
    ThreadPool pool(1);
    launch<BothWays<T>>(pool, {matrix_of(a.data(), n, n), matrix_of(c.data(), 64, 64),
                               matrix_of(d.data(), 64, 64)});
    std::vector<double> want_c(64 * 64), want_d(64 * 64);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j)
        for (int k = 0; k < n; ++k) {
          want_c[i * 64 + j] += 2.0 * to_float(a[i * n + k]) * to_float(a[j * n + k]);
          want_d[i * 64 + j] += 2.0 * to_float(a[k * n + i]) * to_float(a[k * n + j]);
        }
    cria::test::expect_close(c, want_c, {.length = 128, .norm = 128}, "c", 64);
    cria::test::expect_close(d, want_d, {.length = 128, .norm = 128}, "d", 64);
  }
}

// b's rows come as two tiles of 32, in the other order.
template <class T>
struct StackedTiles {
  using Element = T;
  static constexpr int k = 128 / sizeof(T);
  struct Args {
    Tensor<const T> a, b;
    Tensor<float> c;
    bool overwrites;
  };
  struct Shared {
    SharedTile<T, 64, k> a;
    SharedTile<T, 32, k, 3> b;
  };
  static constexpr Traits traits{.threads = 128};
  static Grid grid(const Args&) { return {1}; }
  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    auto c = p.accumulator(shape<64, 64>);
    c += 1.f;
    p.fetch(s.a[0], a.a, 0, 0, 0);
    p.fetch(s.b[1], a.b, 0, 32, 0);
    p.fetch(s.b[2], a.b, 0, 0, 0);
    p.fetch_wait();
    if (a.overwrites)
      p.dot(c, s.a[0], trans(s.b.stacked(1)), overwrite);
    else
      p.dot(c, s.a[0], trans(s.b.stacked(1)));
    p.store(a.c, c, 0, 0);
  }
};

TYPED_TEST(CpuDot, StackedTiles) {
  using T = TypeParam;
  constexpr int k = StackedTiles<T>::k;
  for (bool overwrites : {false, true})
    for (int m : {64, 50})
      for (int n : {64, 41, 20}) {
        const auto a = random_values<T>(m * k, 3), b = random_values<T>(n * k, 4);
        std::vector<float> c(64 * 64);
        ThreadPool pool(1);
        launch<StackedTiles<T>>(pool, {matrix_of(a.data(), m, k), matrix_of(b.data(), n, k),
                                       matrix_of(c.data(), 64, 64), overwrites});
        std::vector<double> want(64 * 64, overwrites ? 0 : 1);
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < n; ++j)
            for (int e = 0; e < k; ++e)
              want[i * 64 + (j + 32) % 64] +=
                  double{to_float(a[i * k + e])} * to_float(b[j * k + e]);
        cria::test::expect_close(c, want, {.length = k, .norm = 1.0 * k}, "c", 64);
      }
}

}  // namespace
}  // namespace cria::tile
