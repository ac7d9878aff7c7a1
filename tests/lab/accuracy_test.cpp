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
        in(stream, dtype, {1, rows, cols}, Values{.phase = 3}),
        out(stream, dtype, {1, rows, cols}) {
    out.copy_from(stream, in);
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
  *pair.out.tensor<float>().at(0, 36, 128) += 1;
  const Accuracy accuracy = pair.check();
  EXPECT_FALSE(accuracy.ok);
  EXPECT_NEAR(accuracy.max_error, 1, 1e-3);
}

TEST(Accuracy, NaNNeverPasses) {
  Pair pair(DType::f32, 5, 7);
  *pair.out.tensor<float>().at(0, 1, 4) = std::numeric_limits<float>::quiet_NaN();
  const Accuracy accuracy = pair.check();
  EXPECT_FALSE(accuracy.ok);
  EXPECT_TRUE(std::isnan(accuracy.max_error));
}

TEST(Accuracy, OutputsStartAsNaN) {
  Stream stream(kCpu);
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Operand out(stream, dtype, {2, 3, 5});
    for (double v : out.fetched(0, out.size())) EXPECT_TRUE(std::isnan(v)) << name_of(dtype);
  }
}

TEST(Accuracy, EndsOfLargeOutputsAreLookedAt) {
  Pair pair(DType::f32, 3, 20'000'000);
  *pair.out.tensor<float>().at(0, 2, 20'000'000 - 1) = 1e6f;
  EXPECT_FALSE(pair.check().ok);
}

}  // namespace
}  // namespace cria
