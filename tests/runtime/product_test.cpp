// Products against a double-precision reference, on every backend.
#include "runtime/product.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "on_device.h"
#include "runtime/thread_pool.h"
#include "support/compare.h"
#include "support/guarded.h"

namespace cria {
namespace {

using test::expect_error;

// The product with its leading dimensions filled in.
Product dense(Product p) {
  if (p.lda == 0) p.lda = p.trans_a ? p.m : p.k;
  if (p.ldb == 0) p.ldb = p.trans_b ? p.k : p.n;
  if (p.ldc == 0) p.ldc = p.n;
  return p;
}

// Elements from the first to the last of a batch of matrices as they are stored.
size_t extent(int batch, int64_t stride, int rows, int64_t ld, int cols) {
  if (batch == 0 || rows == 0 || cols == 0) return 0;
  return (batch - 1) * stride + (rows - 1) * ld + cols;
}

template <class T>
test::Guarded<T> random(size_t count, uint64_t seed) {
  std::vector<float> values(count);
  Rng(seed).fill_normal(values, 1.0f);
  test::Guarded<T> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = from_float<T>(values[i]);
  return out;
}

// A guarded array on the device.
template <class T>
class OnDeviceCopy {
 public:
  OnDeviceCopy(Device device, const test::Guarded<T>& host)
      : buffer_(device, host.image().size_bytes()) {
    buffer_.copy_from_host(host.image().data(), buffer_.bytes());
  }
  T* data() { return reinterpret_cast<T*>(buffer_.as<std::byte>() + test::kGuardBytes); }
  void read_back(test::Guarded<T>& host) {
    buffer_.copy_to_host(host.image().data(), buffer_.bytes());
  }

 private:
  Buffer buffer_;
};

// What multiply() should leave in C's memory.
struct Expected {
  std::vector<double> values;
  std::vector<bool> written;
  double norm = 0;  // bound on the sum of |terms| of any element
};

template <class In, class Out>
Expected reference(const Product& p, const In* a, const In* b, std::span<const Out> c) {
  Expected want{test::to_double(c), std::vector<bool>(c.size(), false)};
  for (int64_t index = 0; index < int64_t{p.batch} * p.m * p.n; ++index) {
    const int64_t entry = index / p.n / p.m, i = index / p.n % p.m, j = index % p.n;
    double sum = 0, squares_a = 0, squares_b = 0;
    for (int64_t k = 0; k < p.k; ++k) {
      double x = to_float(a[entry * p.stride_a + (p.trans_a ? k * p.lda + i : i * p.lda + k)]);
      double y = to_float(b[entry * p.stride_b + (p.trans_b ? j * p.ldb + k : k * p.ldb + j)]);
      sum += x * y;
      squares_a += x * x;
      squares_b += y * y;
    }
    const size_t at = entry * p.stride_c + i * p.ldc + j;
    const double old = p.beta == 0 ? 0 : p.beta * want.values[at];
    const double terms = std::abs(p.alpha) * std::sqrt(squares_a * squares_b) + std::abs(old);
    want.values[at] = p.alpha * sum + old;
    want.written[at] = true;
    want.norm = std::max(want.norm, terms);
  }
  return want;
}

// All of C's memory: results, gaps and guards.
template <class Out>
void check_memory(Device device, const Product& p, const test::Guarded<Out>& c,
                  const std::vector<Out>& before, const Expected& want) {
  c.check("C");
  std::vector<Out> got;
  std::vector<double> results;
  for (size_t i = 0; i < c.size(); ++i) {
    if (want.written[i]) {
      got.push_back(c[i]);
      results.push_back(want.values[i]);
    } else {
      ASSERT_EQ(std::memcmp(&c[i], &before[i], sizeof(Out)), 0) << "gap written at " << i;
    }
  }
  // Tensor cores may cut f32 operands to tf32 instead of rounding them: twice the error.
  const bool tf32 = p.precision == Precision::tf32 && device.backend == Backend::cuda;
  // cuBLASLt may round alpha op(A) op(B) to C's type before it adds beta C.
  const bool twice = p.beta != 0 && device.backend == Backend::cuda;
  const test::Tolerance tolerance{
      .out = p.out,
      .length = p.k + 1,
      .norm = want.norm,
      .inner = (tf32 ? 2 * test::kRoundoffTf32 : 0) + (twice ? test::roundoff(p.out) : 0)};
  test::expect_close(got, results, tolerance, "C", p.n);
}

// Multiplies random matrices and checks what comes out.
template <class In, class Out>
void check_product(Device device, Product p, int algorithm = 0) {
  p.in = dtype_of<In>;
  p.out = dtype_of<Out>;
  p = dense(p);
  SCOPED_TRACE(describe(p) + " alpha " + std::to_string(p.alpha) + " beta " +
               std::to_string(p.beta) + " algorithm " + std::to_string(algorithm));
  const size_t size_a = p.trans_a ? extent(p.batch, p.stride_a, p.k, p.lda, p.m)
                                  : extent(p.batch, p.stride_a, p.m, p.lda, p.k);
  const size_t size_b = p.trans_b ? extent(p.batch, p.stride_b, p.n, p.ldb, p.k)
                                  : extent(p.batch, p.stride_b, p.k, p.ldb, p.n);
  auto a = random<In>(size_a, 1), b = random<In>(size_b, 2);
  auto c = random<Out>(extent(p.batch, p.stride_c, p.m, p.ldc, p.n), 3);
  if (p.beta == 0) std::fill(c.begin(), c.end(), from_float<Out>(NAN));
  const std::vector<Out> before(c.begin(), c.end());
  const Expected want = reference<In, Out>(p, a.data(), b.data(), before);

  Stream stream(device);
  OnDeviceCopy<In> device_a(device, a), device_b(device, b);
  OnDeviceCopy<Out> device_c(device, c), device_addend(device, c);
  multiply(stream, p, device_a.data(), device_b.data(), device_c.data(), algorithm);
  device_c.read_back(c);
  check_memory(device, p, c, before, want);
  if (p.beta == 0) return;
  // An addend of its own gives the same, whatever C held.
  auto other = random<Out>(c.size(), 4);
  const std::vector<Out> other_before(other.begin(), other.end());
  OnDeviceCopy<Out> device_other(device, other);
  multiply(stream, p, device_a.data(), device_b.data(), device_other.data(), algorithm,
           device_addend.data());
  device_other.read_back(other);
  check_memory(device, p, other, other_before, want);
}

void check_all_types(Device device, const Product& p) {
  check_product<float, float>(device, p);
  check_product<bf16, bf16>(device, p);
  check_product<bf16, float>(device, p);
  check_product<f16, f16>(device, p);
  check_product<f16, float>(device, p);
  Product tf32 = p;
  tf32.precision = Precision::tf32;
  check_product<float, float>(device, tf32);
}

class ProductTest : public test::OnDevice {
 protected:
  // Runs f on p with all four combinations of transposes.
  template <class F>
  void with_transposes(Product p, F&& f) {
    for (int i = 0; i < 4; ++i) {
      p.trans_a = i & 1;
      p.trans_b = i & 2;
      f(p);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, ProductTest, test::every_backend(), test::backend_name);

TEST_P(ProductTest, EverySizeTypeAndTranspose) {
  const int sizes[][3] = {{1, 1, 1},    {1, 33, 17},   {5, 1, 64},    {7, 9, 1},    {16, 16, 16},
                          {64, 64, 64}, {65, 31, 127}, {129, 257, 3}, {128, 96, 64}};
  for (auto [m, n, k] : sizes) {
    with_transposes({.m = m, .n = n, .k = k},
                    [&](const Product& p) { check_all_types(device(), p); });
  }
}

// Large enough to be cut into blocks for several workers.
TEST_P(ProductTest, SharedByAllWorkers) {
  const int sizes[][3] = {{200, 150, 170}, {3, 700, 400}, {900, 2, 400}, {1, 1, 600000}};
  for (auto [m, n, k] : sizes) {
    with_transposes({.m = m, .n = n, .k = k},
                    [&](const Product& p) { check_product<float, float>(device(), p); });
  }
  check_product<bf16, bf16>(device(), {.m = 150, .n = 200, .k = 170});
}

TEST_P(ProductTest, ScalesAndAdds) {
  for (float alpha : {1.0f, 0.0f, -0.5f}) {
    for (float beta : {0.0f, 1.0f, 0.25f}) {
      with_transposes({.m = 24, .n = 40, .k = 33, .alpha = alpha, .beta = beta},
                      [&](const Product& p) { check_all_types(device(), p); });
    }
  }
}

TEST_P(ProductTest, LeavesGapsBetweenRows) {
  with_transposes({.m = 20, .n = 17, .k = 11, .beta = 1, .lda = 24, .ldb = 40, .ldc = 32},
                  [&](const Product& p) { check_all_types(device(), p); });
}

TEST_P(ProductTest, Batches) {
  Product p{.m = 12, .n = 20, .k = 16, .batch = 5};
  p.stride_a = 12 * 16 + 8;
  p.stride_b = 16 * 20;
  p.stride_c = 12 * 20 + 16;
  with_transposes(p, [&](const Product& q) { check_all_types(device(), q); });
  p.batch = 37;
  p.stride_b = 0;  // one B for all
  check_all_types(device(), p);
  p.batch = 1;
  check_all_types(device(), p);
}

// Heads side by side in the rows of one matrix, as attention has them.
TEST_P(ProductTest, InterleavedBatches) {
  const int heads = 4, width = 8;
  Product p{.m = 10, .n = width, .k = 24, .ldc = heads * width, .batch = heads};
  p.stride_a = 10 * 24;
  p.stride_b = width;
  p.ldb = heads * width;
  p.stride_c = width;
  check_all_types(device(), p);
}

TEST_P(ProductTest, NothingToMultiply) {
  Stream stream(device());
  multiply(stream, {.m = 0, .n = 3, .k = 3}, nullptr, nullptr, nullptr);
  multiply(stream, {.m = 3, .n = 0, .k = 3}, nullptr, nullptr, nullptr);
  multiply(stream, {.m = 3, .n = 3, .k = 3, .batch = 0}, nullptr, nullptr, nullptr);
  // The empty sum.
  check_product<float, float>(device(), {.m = 5, .n = 3, .k = 0});
  check_product<bf16, bf16>(device(), {.m = 5, .n = 3, .k = 0, .ldc = 4});
  check_product<float, float>(device(), {.m = 5, .n = 3, .k = 0, .beta = 1});
  expect_error([&] { check_product<float, float>(device(), {.m = 5, .n = 3, .k = 0, .beta = 2}); },
               "beta must be 0 or 1");
}

TEST_P(ProductTest, TheSameBitsEveryTime) {
  Stream stream(device());
  const int m = 150, n = 130, k = 999;
  auto a = random<float>(m * k, 4), b = random<float>(k * n, 5);
  OnDeviceCopy<float> device_a(device(), a), device_b(device(), b);
  std::vector<std::vector<float>> results;
  for (int i = 0; i < 5; ++i) {
    test::Guarded<float> c(m * n);
    OnDeviceCopy<float> device_c(device(), c);
    multiply(stream, {.m = m, .n = n, .k = k}, device_a.data(), device_b.data(), device_c.data());
    device_c.read_back(c);
    results.emplace_back(c.begin(), c.end());
    EXPECT_EQ(results[i], results[0]);
  }
}

TEST_P(ProductTest, EveryAlgorithmIsRight) {
  const Product p{.m = 96, .n = 160, .k = 256};
  size_t count = product_algorithms(device(), p).size();
  EXPECT_GE(count, 1u);
  EXPECT_LE(count, 8u);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_FALSE(product_algorithms(device(), p)[i].empty());
    check_product<float, float>(device(), p, i);
  }
  Product half = p;
  half.in = half.out = DType::bf16;
  count = product_algorithms(device(), half).size();
  for (size_t i = 0; i < count; ++i) check_product<bf16, bf16>(device(), half, i);
  expect_error([&] { check_product<float, float>(device(), p, 99); }, "no algorithm 99");
  expect_error([&] { check_product<float, float>(device(), p, -1); }, "no algorithm -1");
}

// Operands that start anywhere: columns of a wider matrix.
TEST_P(ProductTest, UnalignedOperands) {
  Stream stream(device());
  const int n = 32, width = 3 * n + 1;
  auto wide = random<bf16>(n * width, 6);
  OnDeviceCopy<bf16> matrix(device(), wide);
  test::Guarded<float> c(n * n + 1);
  OnDeviceCopy<float> device_c(device(), c);
  Product p{.m = n, .n = n, .k = n, .trans_b = true, .in = DType::bf16, .lda = width, .ldb = width};
  multiply(stream, p, matrix.data() + 1, matrix.data() + n + 1, device_c.data() + 1);
  device_c.read_back(c);
  c.check("C");
  std::vector<double> want(n * n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      for (int k = 0; k < n; ++k) {
        want[i * n + j] +=
            double(to_float(wide[i * width + 1 + k])) * to_float(wide[j * width + n + 1 + k]);
      }
    }
  }
  test::expect_close(std::span(c.data() + 1, n * n), want, {.length = n, .norm = 2.0 * n}, "C", n);
}

TEST_P(ProductTest, NamesItsLibrary) {
  std::string name = product_library(device());
  if (on_cuda()) {
    EXPECT_NE(name.find("cuBLASLt"), std::string::npos) << name;
  } else {
    EXPECT_FALSE(name.empty());
  }
}

TEST_P(ProductTest, InsideAParallelRegion) {
  if (on_cuda()) GTEST_SKIP() << "workers run CPU products only";
  std::vector<float> a(64 * 64, 2), b(64 * 64, 3), c(4 * 64 * 64);
  ThreadPool::shared().run(4, [&](int64_t task, int) {
    Stream stream(kCpu);
    multiply(stream, {.m = 64, .n = 64, .k = 64}, a.data(), b.data(), c.data() + task * 64 * 64);
  });
  for (float x : c) ASSERT_EQ(x, 6 * 64);
}

TEST(Product, RefusesWhatMakesNoSense) {
  Stream stream(kCpu);
  float x[64] = {};
  auto refuse = [&](const Product& p, const char* words) {
    expect_error([&] { multiply(stream, p, x, x, x); }, words);
  };
  refuse({.m = -1, .n = 2, .k = 2}, "must not be negative");
  refuse({.m = 2, .n = 2, .k = 2, .batch = -1}, "must not be negative");
  refuse({.m = 2, .n = 2, .k = 4, .lda = 3}, "lda is 3");
  refuse({.m = 2, .n = 4, .k = 2, .ldb = 3}, "ldb is 3");
  refuse({.m = 2, .n = 4, .k = 2, .ldc = -4}, "ldc is -4");
  refuse({.m = 2, .n = 2, .k = 2, .in = DType::i32}, "use f32, bf16 or f16");
  refuse({.m = 2, .n = 2, .k = 2, .out = DType::bf16}, "a result of the same type or f32");
  refuse({.m = 2, .n = 2, .k = 2, .in = DType::bf16, .out = DType::f16}, "same type or f32");
  refuse({.m = 2, .n = 2, .k = 2, .in = DType::bf16, .precision = Precision::tf32},
         "tf32 is a way");
  refuse({.m = 2, .n = 2, .k = 2, .batch = 2}, "results overlap");
  refuse({.m = 2, .n = 2, .k = 2, .batch = 2, .stride_c = 3}, "results overlap");
  refuse({.m = 2, .n = 2, .k = 2, .batch = 2, .stride_a = -1}, "strides must not be negative");
}

TEST(Product, KnowsItsCost) {
  Cost cost = cost_of({.m = 2, .n = 3, .k = 5, .in = DType::bf16, .out = DType::f32});
  EXPECT_EQ(cost.flops, 60);
  EXPECT_EQ(cost.bytes_read, (10 + 15) * 2);
  EXPECT_EQ(cost.bytes_written, 6 * 4);
  Product shared{.m = 2, .n = 3, .k = 5, .beta = 1, .batch = 4, .stride_a = 10, .stride_c = 6};
  EXPECT_EQ(cost_of(shared).flops, 240);
  EXPECT_EQ(cost_of(shared).bytes_read, (40 + 15 + 24) * 4);
  EXPECT_EQ(describe(shared), "4x2x3x5 NN f32");
}

}  // namespace
}  // namespace cria
