// A tensor of a measured problem. Inputs hold normal numbers that the host knows by index, so that
// a result can be checked against float64 without a copy of the operands; outputs start as NaN.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/tensor.h"
#include "runtime/buffer.h"
#include "runtime/stream.h"

namespace cria {

// Element i is scale * z[(i + phase) mod period] rounded to the type: z is one fixed sequence of
// normal numbers, its period a prime, so that rows of any width differ.
struct Values {
  uint64_t phase = 0;
  float scale = 1;
  float mean = 0;
};

// The exact value of a result, and a bound on the sum of the magnitudes of what is added up to it
// (0: the value itself).
struct Exact {
  double value = 0;
  double norm = 0;
};

class Operand {
 public:
  // An input.
  Operand(Stream& stream, DType dtype, int batch, int rows, int cols, Values values);
  // An output, poisoned.
  Operand(Stream& stream, DType dtype, int batch, int rows, int cols);

  DType dtype() const { return dtype_; }
  int64_t rows() const { return int64_t{batch_} * rows_; }  // of all matrices
  int cols() const { return cols_; }
  int64_t size() const { return rows() * cols_; }
  int64_t bytes() const { return size() * static_cast<int64_t>(size_of(dtype_)); }
  void* data() const { return buffer_.as<void>(); }

  template <class T>
  Tensor<T> tensor() const {
    require(dtype_of<T> == dtype_, "an operand was asked for as another type than it has");
    return batch_of(buffer_.as<std::remove_const_t<T>>(), batch_, rows_, cols_);
  }

  // Makes every element NaN (for integers: all bits set).
  void poison(Stream& stream);

  // What an input holds: `count` elements from `begin`, or every `stride`-th of them.
  std::vector<double> held(int64_t begin, int64_t count, int64_t stride = 1) const;
  double held(int64_t index) const;
  // Of all elements, with the sum of their magnitudes, and of their squares.
  Exact sum() const;
  Exact sum_squares() const;
  // What is in memory now.
  std::vector<double> fetched(int64_t begin, int64_t count) const;
  // Its bits, of a 16-bit type.
  std::vector<uint16_t> fetched_bits(int64_t begin, int64_t count) const;

 private:
  template <class F>
  Exact sum_of(F term) const;

  DType dtype_;
  int batch_, rows_, cols_;
  Values values_;
  Buffer buffer_;
};

}  // namespace cria
