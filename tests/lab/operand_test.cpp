// How operands lie in memory: elements are the same with gaps and without, and gaps hold zeros.
#include "lab/operand.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lab/library.h"

namespace cria {
namespace {

constexpr Values kValues{.phase = 12345, .scale = 2, .mean = 1};

const OperandShape kShapes[] = {{1, 5, 7},      {3, 5, 7},       {3, 5, 16}, {1, 5, {3, 6}},
                                {2, 9, {3, 6}}, {1, {2, 11}, 9}, {4, 1, 13}, {1, 1, 1001},
                                {1, 1001, 1},   {1, 0, 7},       {1, 1, 0}};

OperandShape packed(OperandShape shape) {
  shape.packed = true;
  return shape;
}

// All of an operand's memory on the CPU, a number for each element.
template <class T>
std::vector<float> memory_of(const Operand& o) {
  const auto* data = static_cast<const T*>(o.data());
  std::vector<float> out;
  for (int64_t i = 0; i < o.batch() * o.layout().stride; ++i) out.push_back(to_float(data[i]));
  return out;
}

TEST(Operand, HoldsWhatItSays) {
  Stream stream(kCpu);
  // More than one period of the numbers it is made of.
  const Operand in(stream, DType::bf16, {2, 1031, 1033}, kValues);
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

TEST(Operand, ElementsAreTheSameWithGapsAndWithout) {
  Stream stream(kCpu);
  for (const OperandShape& shape : kShapes) {
    const Operand pitched(stream, DType::f32, shape, kValues);
    const Operand rows(stream, DType::f32, packed(shape), kValues);
    const std::vector<double> held = rows.held(0, rows.size());
    EXPECT_EQ(std::ssize(held), shape.batch * shape.rows.size() * shape.cols.size());
    EXPECT_EQ(pitched.held(0, pitched.size()), held);
    EXPECT_EQ(pitched.fetched(0, pitched.size()), held);
    EXPECT_EQ(rows.fetched(0, rows.size()), held);
    EXPECT_EQ(pitched.bytes(), rows.bytes());
    // Any piece, across rows and parts.
    for (int64_t begin = 0; begin < std::min<int64_t>(pitched.size(), 40); begin += 3) {
      const int64_t count = std::min<int64_t>(pitched.size() - begin, 23);
      const auto first = held.begin() + begin;
      EXPECT_EQ(pitched.fetched(begin, count), std::vector<double>(first, first + count));
    }
  }
}

TEST(Operand, GapsAreZerosAndStayWhenElementsAreSpoiled) {
  Stream stream(kCpu);
  for (const OperandShape& shape : kShapes) {
    const Operand input(stream, DType::bf16, shape, {.mean = 100});
    int64_t zeros = 0;
    for (const float v : memory_of<bf16>(input)) zeros += v == 0;
    EXPECT_EQ(zeros, shape.batch * input.layout().stride - input.size());

    const Operand output(stream, DType::bf16, shape);
    for (const Operand* o : {&input, &output}) {
      o->poison(stream);
      int64_t spoiled = 0, left = 0;
      for (const float v : memory_of<bf16>(*o)) spoiled += std::isnan(v), left += v == 0;
      EXPECT_EQ(spoiled, o->size());
      EXPECT_EQ(left, zeros);
      for (const double v : o->fetched(0, o->size())) EXPECT_TRUE(std::isnan(v));
    }
    output.copy_from(stream, input);
    output.clear(stream);
    for (const float v : memory_of<bf16>(output)) EXPECT_EQ(v, 0);
  }
}

// More than is sent to a device at once, and than the period of the numbers.
TEST(Operand, LongOnesAreFilledToTheEnd) {
  Stream stream(kCpu);
  const Operand o(stream, DType::f32, {1, 2100, 2049}, kValues);
  const Tensor<const float> t = o.tensor<const float>();
  for (const int64_t row : {0, 511, 512, 1023, 1024, 2039, 2040, 2041, 2099}) {
    const std::vector<double> held = o.held(row * 2049, 2049);
    for (int64_t c = 0; c < 2049; ++c) ASSERT_EQ(t.row(row)[c], held[c]) << row << " " << c;
    for (int64_t c = 2049; c < t.ld; ++c) ASSERT_EQ(t.row(row)[c], 0);
  }
}

TEST(Operand, RowsPartsAndMatricesBeginAtWhole16Bytes) {
  Stream stream(kCpu);
  const Operand batch(stream, DType::bf16, {3, 5, 7}, kValues);
  EXPECT_EQ(batch.tensor<bf16>().ld, 8);
  EXPECT_EQ(batch.tensor<bf16>().cols, 7);
  EXPECT_EQ(batch.tensor<bf16>().batch_stride, 64);

  const Operand halves(stream, DType::bf16, {1, 5, {2, 11}}, kValues);
  EXPECT_EQ(halves.cols(), 22);
  EXPECT_EQ(halves.tensor<bf16>().cols, 32);
  const Tensor<const bf16> up = halves.part<const bf16>(1);
  EXPECT_EQ(up.data - halves.tensor<const bf16>().data, 16);
  EXPECT_EQ(up.cols, 11);
  EXPECT_EQ(to_float(*up.at(0, 4, 10)), halves.held(4 * 22 + 11 + 10));

  const Operand joined(stream, DType::bf16, {1, {2, 11}, 9}, kValues);
  EXPECT_EQ(joined.tensor<bf16>().rows, 32);
  EXPECT_EQ(to_float(*joined.part<const bf16>(1).at(0, 10, 8)), joined.held((11 + 10) * 9 + 8));

  const Operand rows(stream, DType::bf16, {2, 9, {3, 6}}, kValues);
  const Tensor<const bf16> heads = rows.heads<const bf16>();
  EXPECT_EQ(heads.ld, 24);
  EXPECT_EQ(heads.head_stride, 8);
  EXPECT_EQ(to_float(*heads.at(3 + 2, 8, 5)), rows.held(rows.size() - 1));
}

TEST(Operand, VectorsDoNotGrow) {
  Stream stream(kCpu);
  EXPECT_EQ(Operand(stream, DType::f32, {1, 1, 1001}).layout().stride, 1008);
  EXPECT_EQ(Operand(stream, DType::f32, {1, 1001, 1}).layout().stride, 1001);
  EXPECT_EQ(Operand(stream, DType::f32, {4, 1, 13}).layout().stride, 16);
}

TEST(Operand, PartsThatGapsMakeTooWideAreRefused) {
  Stream stream(kCpu);
  try {
    const Operand o(stream, DType::f32, {1, 2, {1 << 28, 2}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("--packed"), std::string::npos) << error.what();
  }
}

struct Case {
  bool trans_a, trans_b;
  int m, n, k;
};

// m and k are tokens where they are rows of all that has them.
TEST(LibraryProduct, RunsOverTheGapsThatPlansRunOver) {
  Stream stream(kCpu);
  for (const Case& want : {Case{false, true, 11, 16, 24},   // y = x wᵀ
                           Case{false, false, 11, 16, 24},  // dx = dy w
                           Case{true, false, 16, 16, 21},   // dw = dyᵀ x
                           Case{true, true, 16, 16, 24}}) {
    for (const bool is_packed : {false, true}) {
      const auto matrix = [&](bool transposed, int rows, int cols) {
        if (transposed) std::swap(rows, cols);
        return Operand(stream, DType::f32, {2, rows, cols, is_packed}, kValues);
      };
      const Operand a = matrix(want.trans_a, 11, 21), b = matrix(want.trans_b, 21, 13);
      const Operand c = matrix(false, 11, 13);
      const Product p = product_of({.trans_a = want.trans_a, .trans_b = want.trans_b}, a, b, c);
      EXPECT_EQ(p.m, is_packed ? 11 : want.m);
      EXPECT_EQ(p.n, is_packed ? 13 : want.n);
      EXPECT_EQ(p.k, is_packed ? 21 : want.k);
      EXPECT_EQ(p.lda, a.layout().ld);
      EXPECT_EQ(p.ldc, is_packed ? 13 : 16);
      EXPECT_EQ(p.batch, 2);
      EXPECT_EQ(p.stride_c, is_packed ? 11 * 13 : 16 * 16);
    }
  }
  // A vector has no gaps to run over.
  const Operand a(stream, DType::f32, {1, 11, 21}), b(stream, DType::f32, {1, 1, 21});
  const Operand c(stream, DType::f32, {1, 11, 1});
  const Product p = product_of({.trans_b = true}, a, b, c);
  EXPECT_EQ(p.n, 1);
  EXPECT_EQ(p.k, 24);
  EXPECT_EQ(p.ldc, 1);
}

}  // namespace
}  // namespace cria
