#include "base/tensor.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/dtype.h"

namespace cria {
namespace {

TEST(Tensor, AddressesFollowStrides) {
  std::vector<float> storage(200);
  const Tensor<float> matrix = matrix_of(storage.data(), 3, 5, 8);
  EXPECT_EQ(matrix.row(2), storage.data() + 16);
  EXPECT_EQ(matrix.at(0, 2, 4), storage.data() + 20);
  EXPECT_EQ(matrix.size(), 15);
  EXPECT_EQ(matrix.bytes(), 60);

  const Tensor<float> batch = batch_of(storage.data(), 4, 3, 5);
  EXPECT_EQ(batch.at(3, 2, 4), storage.data() + 59);
  EXPECT_EQ(batch.size(), 60);

  const Tensor<float> vector = vector_of(storage.data(), 7);
  EXPECT_EQ(vector.batch, 1);
  EXPECT_EQ(vector.rows, 1);
  EXPECT_EQ(vector.at(0, 0, 6), storage.data() + 6);
}

TEST(Tensor, SizesDoNotOverflowInt) {
  const Tensor<bf16> huge = batch_of<bf16>(nullptr, 1 << 10, 1 << 16, 1 << 12);
  EXPECT_EQ(huge.size(), int64_t{1} << 38);
  EXPECT_EQ(huge.bytes(), int64_t{1} << 39);
  EXPECT_EQ(huge.batch_stride, int64_t{1} << 28);
}

TEST(Tensor, BecomesConstButNotBack) {
  static_assert(std::is_convertible_v<Tensor<float>, Tensor<const float>>);
  static_assert(!std::is_convertible_v<Tensor<const float>, Tensor<float>>);
  float x = 0;
  const Tensor<const float> view = vector_of(&x, 1);
  EXPECT_EQ(view.data, &x);
  EXPECT_EQ(view.cols, 1);
}

TEST(Tensor, EmptyIsFine) {
  EXPECT_EQ(Tensor<float>{}.size(), 0);
  EXPECT_EQ(matrix_of<float>(nullptr, 0, 5).bytes(), 0);
}

}  // namespace
}  // namespace cria
