// A tensor of a measured problem. Inputs hold normal numbers that the host knows by index, so that
// a result can be checked against float64 without a copy of the operands; outputs start as NaN.
// It lies in memory as plans lay tensors out: rows, parts of rows and matrices begin at whole 16
// bytes, and the gaps between them hold zeros.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/runs.h"
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

// Rows or columns of an operand: in one piece, or in parts of the same width, such as heads, each
// with a gap of its own.
struct Extent {
  int parts = 1, width = 0;

  Extent(int width) : width(width) {}
  Extent(int parts, int width) : parts(parts), width(width) {}
  int64_t size() const { return int64_t{parts} * width; }
};

struct OperandShape {
  int batch;
  Extent rows, cols;
  bool packed = false;  // no gaps; a matrix of one row or one column has none between rows anyway
};

class Operand {
 public:
  // An input.
  Operand(Stream& stream, DType dtype, const OperandShape& shape, Values values);
  // An output, poisoned.
  Operand(Stream& stream, DType dtype, const OperandShape& shape);

  // Elements are counted without gaps: number i is column i % cols() of row i / cols().
  DType dtype() const { return dtype_; }
  int64_t rows() const { return shape_.batch * shape_.rows.size(); }  // of all matrices
  int cols() const { return static_cast<int>(shape_.cols.size()); }
  int64_t size() const { return rows() * cols(); }
  int64_t bytes() const { return size() * static_cast<int64_t>(size_of(dtype_)); }
  void* data() const { return buffer_.as<void>(); }

  // The matrices; where rows or columns have parts, with the gaps behind each.
  template <class T>
  Tensor<T> tensor() const {
    const Layout& l = layout_;
    return {as<T>(), shape_.batch, l.rows.exact, l.cols.exact, l.ld, l.stride};
  }
  // One part of a single matrix's rows or columns.
  template <class T>
  Tensor<T> part(int i) const {
    require(shape_.batch == 1 && (shape_.rows.parts == 1 || shape_.cols.parts == 1),
            "a part was asked for of an operand that is not in parts in one direction");
    const int64_t step = shape_.cols.parts > 1 ? layout_.runs.middle_step : layout_.runs.outer_step;
    return matrix_of(as<T>() + i * step, shape_.rows.width, shape_.cols.width, layout_.ld);
  }
  // The parts of columns as heads.
  template <class T>
  Tensor<T> heads() const {
    require(shape_.rows.parts == 1, "an operand has heads in one direction only");
    const int heads = shape_.cols.parts;
    const Layout& l = layout_;
    return {as<T>(), shape_.batch * heads, shape_.rows.width, shape_.cols.width, l.ld, l.stride,
            heads,   l.runs.middle_step};
  }

  // How a matrix lies: its rows and columns as tensor() has them, and with the gaps behind them.
  struct Count {
    int exact, with_gaps;
  };
  struct Layout {
    Count rows, cols;
    int64_t ld;      // elements from one row to the next
    int64_t stride;  // and from one matrix to the next
    Runs runs;       // parts of rows; in them rows and parts of columns; in them columns
  };
  const Layout& layout() const { return layout_; }
  int batch() const { return shape_.batch; }

  // Makes every element NaN (for integers: all bits set), and leaves the gaps.
  void poison(Stream& stream) const;
  // Makes everything 0.
  void clear(Stream& stream) const;
  // Takes the elements of an operand of the same type and shape.
  void copy_from(Stream& stream, const Operand& other) const;

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
  template <class T>
  std::remove_const_t<T>* as() const {
    require(dtype_of<T> == dtype_, "an operand was asked for as another type than it has");
    return buffer_.as<std::remove_const_t<T>>();
  }
  size_t memory_bytes() const;
  bool has_gaps() const;
  bool is_one_run() const;  // gaps, if any, lie behind the last element only
  int64_t place(int64_t index) const;
  template <class T>
  std::vector<T> fetch(int64_t begin, int64_t count) const;
  template <class F>
  Exact sum_of(F term) const;

  DType dtype_;
  OperandShape shape_;
  Layout layout_;
  Values values_;
  Buffer buffer_;
};

}  // namespace cria
