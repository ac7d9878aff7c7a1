// Tensor: a view of batch x rows x cols elements, row-major. It owns nothing; `Tensor<const T>` is
// how an argument says it is only read.
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
  int64_t ld = 0;            // elements from one row to the next, >= cols
  int64_t batch_stride = 0;  // elements from one matrix to the next

  constexpr T* row(int64_t r) const { return data + r * ld; }
  constexpr T* at(int64_t b, int64_t r, int64_t c) const {
    return data + b * batch_stride + r * ld + c;
  }

  // Elements in the view, without the gaps between rows.
  constexpr int64_t size() const { return int64_t{batch} * rows * cols; }
  constexpr int64_t bytes() const { return size() * static_cast<int64_t>(sizeof(T)); }

  constexpr operator Tensor<const T>() const requires(!std::is_const_v<T>) {
    return {data, batch, rows, cols, ld, batch_stride};
  }
};

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

}  // namespace cria
