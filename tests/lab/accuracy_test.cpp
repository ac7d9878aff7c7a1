#include "lab/accuracy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cria {
namespace {

// An output that holds what an input of the same values holds.
struct Pair {
  explicit Pair(DType dtype, int rows, int cols)
      : stream(kCpu),
        in(stream, dtype, 1, rows, cols, Values{.phase = 3}),
        out(stream, dtype, 1, rows, cols) {
    stream.copy(out.data(), in.data(), in.bytes());
  }
  Accuracy check() const {
    return check_output(out, {}, 1, [&](int64_t row, auto cols, auto want) {
      for (size_t i = 0; i < cols.size(); ++i) want[i].value = in.held(row * in.cols() + cols[i]);
    });
  }
  Stream stream;
  Operand in, out;
};

TEST(Accuracy, EqualIsRight) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Pair pair(dtype, 37, 129);
    const Accuracy accuracy = pair.check();
    EXPECT_TRUE(accuracy.ok);
    EXPECT_EQ(accuracy.max_error, 0);
  }
}

TEST(Accuracy, OneWrongElementIsSeen) {
  Pair pair(DType::f32, 37, 129);
  static_cast<float*>(pair.out.data())[36 * 129 + 128] += 1;
  const Accuracy accuracy = pair.check();
  EXPECT_FALSE(accuracy.ok);
  EXPECT_NEAR(accuracy.max_error, 1, 1e-3);
}

TEST(Accuracy, NaNNeverPasses) {
  Pair pair(DType::f32, 5, 7);
  static_cast<float*>(pair.out.data())[11] = std::numeric_limits<float>::quiet_NaN();
  const Accuracy accuracy = pair.check();
  EXPECT_FALSE(accuracy.ok);
  EXPECT_TRUE(std::isnan(accuracy.max_error));
}

TEST(Accuracy, OutputsStartAsNaN) {
  Stream stream(kCpu);
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Operand out(stream, dtype, 2, 3, 5);
    for (double v : out.fetched(0, out.size())) EXPECT_TRUE(std::isnan(v)) << name_of(dtype);
  }
}

TEST(Accuracy, EndsOfLargeOutputsAreLookedAt) {
  Pair pair(DType::f32, 3, 20'000'000);
  static_cast<float*>(pair.out.data())[3LL * 20'000'000 - 1] = 1e6f;
  EXPECT_FALSE(pair.check().ok);
}

TEST(Operand, HoldsWhatItSays) {
  Stream stream(kCpu);
  // More than one period of the numbers it is made of.
  const Operand in(stream, DType::bf16, 2, 1031, 1033,
                   Values{.phase = 12345, .scale = 2, .mean = 1});
  const std::vector<double> held = in.held(0, in.size()), fetched = in.fetched(0, in.size());
  EXPECT_EQ(held, fetched);
  EXPECT_EQ(in.held(999), held[999]);
  EXPECT_EQ(in.held(5, 3, 100), (std::vector<double>{held[5], held[105], held[205]}));
  double sum = 0, norm = 0;
  for (double v : held) sum += v, norm += std::abs(v);
  EXPECT_NEAR(in.sum().value, sum, 1e-9 * norm);
  EXPECT_NEAR(in.sum().norm, norm, 1e-9 * norm);
  EXPECT_NEAR(sum / double(in.size()), 1, 0.01);
}

}  // namespace
}  // namespace cria
