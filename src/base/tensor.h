// Tensor: a view of `batch` matrices of rows x cols elements, row-major. It owns nothing;
// `Tensor<const T>` is how an argument says it is only read. The matrices may come in groups of
// `heads`, so that [B, T, H, K] reads as B * H matrices of T x K without a copy.
#pragma once

#include <cstdint>
#include <type_traits>

namespace cria {

template <class T>
struct Tensor {
  T* data = nullptr;
  int batch = 0;
  int rows = 0;
  int cols = 0;
  int64_t ld = 0;                    // elements from one row to the next, >= cols
  int64_t batch_stride = 0;          // elements from one group (by default, one matrix) to the next
  int heads = 1;                     // matrices per group; batch counts all of them
  int64_t head_stride = 0;           // elements from one matrix of a group to the next
  const void* descriptor = nullptr;  // a launch's own (TMA maps); callers leave it

  constexpr T* matrix(int b) const {
    return heads == 1 ? data + b * batch_stride
                      : data + b / heads * batch_stride + b % heads * head_stride;
  }
  constexpr T* row(int64_t r) const { return data + r * ld; }
  constexpr T* at(int b, int64_t r, int64_t c) const { return matrix(b) + r * ld + c; }

  // Elements in the view, without the gaps between rows.
  constexpr int64_t size() const { return int64_t{batch} * rows * cols; }
  constexpr int64_t bytes() const { return size() * static_cast<int64_t>(sizeof(T)); }

  template <class U>
    requires(std::is_same_v<U, const T> && !std::is_const_v<T>)
  constexpr operator Tensor<U>() const {
    return {data, batch, rows, cols, ld, batch_stride, heads, head_stride, descriptor};
  }
};

// Elements from one row to the next where cria lays rows out: whole 16 bytes of every type, which is
// what vectors, TMA and tensor cores ask for. The gap behind a row's columns holds zeros.
template <class I>
constexpr I pitch_of(I cols) {
  return (cols + 7) / 8 * 8;
}

template <class T>
constexpr Tensor<T> matrix_of(T* data, int rows, int cols, int64_t ld) {
  return {data, 1, rows, cols, ld, rows * ld};
}

template <class T>
constexpr Tensor<T> matrix_of(T* data, int rows, int cols) {
  return matrix_of(data, rows, cols, cols);
}

template <class T>
constexpr Tensor<T> vector_of(T* data, int n) {
  return matrix_of(data, 1, n);
}

template <class T>
constexpr Tensor<T> batch_of(T* data, int batch, int rows, int cols) {
  return {data, batch, rows, cols, cols, int64_t{rows} * cols};
}

// Rows at their pitch.
template <class T>
constexpr Tensor<T> pitched_matrix(T* data, int rows, int cols) {
  return matrix_of(data, rows, cols, pitch_of(int64_t{cols}));
}

// Matrices at their pitch, and whole rows of gaps behind their rows.
template <class T>
constexpr Tensor<T> pitched_batch(T* data, int batch, int rows, int cols) {
  const int64_t ld = pitch_of(int64_t{cols});
  return {data, batch, rows, cols, ld, pitch_of(int64_t{rows}) * ld};
}

// A matrix with the gaps behind its columns.
template <class T>
constexpr Tensor<T> with_gaps(Tensor<T> t) {
  if (pitch_of(int64_t{t.cols}) <= t.ld) t.cols = pitch_of(t.cols);
  return t;
}

// Heads inside rows: batch x rows x heads x cols elements as batch * heads matrices of rows x cols.
template <class T>
constexpr Tensor<T> heads_of(T* data, int batch, int rows, int heads, int cols, int64_t ld,
                             int64_t head_stride) {
  return {data, batch * heads, rows, cols, ld, rows * ld, heads, head_stride};
}

template <class T>
constexpr Tensor<T> heads_of(T* data, int batch, int rows, int heads, int cols, int64_t ld) {
  return heads_of(data, batch, rows, heads, cols, ld, cols);
}

}  // namespace cria
