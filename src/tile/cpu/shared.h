// Shared tiles on the CPU. A fetched tile stays where it is: its stage remembers the block of the
// tensor, and dot converts or transposes it on first use. A tile written by the program holds
// floats that are rounded to T. The stages live in the worker's scratch memory.
#pragma once

#include "base/error.h"
#include "base/tensor.h"
#include "tile/cpu/expr.h"
#include "tile/cpu/transpose.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

// What a stage's array holds: nothing; nothing yet of a fetched block; that block as floats,
// row-major or transposed; a tile written by the program.
enum class Form : uint8_t { kEmpty, kFetched, kPlain, kTransposed, kWritten };

template <class T>
struct Stage {
  const T* source;  // the fetched block's first element
  int64_t ld;
  int rows, cols;  // of it that lie inside the tensor
  Form form = Form::kEmpty;
};

template <class T, int Rows, int Cols>
struct View {
  static_assert(Rows % 8 == 0, "a shared tile has a multiple of 8 rows (the swizzle's period)");
  static_assert(Cols * sizeof(T) % 128 == 0, "a shared tile's rows are whole 128-byte panels");
  using Memory = T;
  static constexpr int rows = Rows, cols = Cols;
  Stage<T>* stage;
  float* data;
  // The same memory as a tile of another shape, to be filled anew.
  template <int R, int C>
  CRIA_FN View<T, R, C> as(Shape<R, C>) const {
    static_assert(R * C <= Rows * Cols, "as: the other shape must fit into the tile's memory");
    return {stage, data};
  }
};

// A view read with rows and columns exchanged, as an operand of dot.
template <class V>
struct Transposed {
  static constexpr int rows = V::cols, cols = V::rows;
  V view;
};
template <class T, int R, int C>
CRIA_FN Transposed<View<T, R, C>> trans(View<T, R, C> v) {
  return {v};
}

// Two tiles, one below the other, as one operand of dot.
template <class V>
struct Stacked {
  static constexpr int rows = 2 * V::rows, cols = V::cols;
  V top, bottom;
};
template <class V>
CRIA_FN Transposed<Stacked<V>> trans(Stacked<V> v) {
  return {v};
}

// `Count` tiles of Rows x Cols: the stages of a pipeline, or one operand.
template <class T, int Rows, int Cols, int Count = 1>
struct SharedTile {
  mutable Stage<T> stages[Count];
  alignas(64) mutable float data[Count][Rows * Cols];
  CRIA_FN View<T, Rows, Cols> operator[](int i) const { return {&stages[i], data[i]}; }
  // Tiles i and i + 1, one below the other, as one operand of dot.
  CRIA_FN Stacked<View<T, Rows, Cols>> stacked(int i) const {
    static_assert(Cols * sizeof(T) == 128, "stacked: tiles one 128-byte panel wide");
    return {(*this)[i], (*this)[i + 1]};
  }
};

// Accumulators set aside, `Count` of Rows x Cols.
template <int Rows, int Cols>
struct Saved {
  float* data;
  template <class T>
  CRIA_FN Saved as(Type<T>) const {
    return *this;
  }
};
template <int Rows, int Cols, int Count>
struct SavedAccumulators {
  alignas(64) mutable float data[Count][Rows * Cols];
  CRIA_FN Saved<Rows, Cols> operator[](int i) const { return {data[i]}; }
};

// One operand of a product: element (i, k) at data[i * stride + k * step], for `outer` x `inner` of
// them.
struct Matrix {
  const float* data;
  int64_t stride, step;
  int outer, inner;
};

// The stage's block as floats: in place where it is float already, else converted once and kept.
template <class T, int R, int C>
CRIA_FN Matrix plain_floats(View<T, R, C> v, float* spare) {
  Stage<T>& s = *v.stage;
  if (s.form == Form::kWritten) return {v.data, C, 1, R, C};
  if constexpr (std::is_same_v<T, float>) {
    return {s.source, s.ld, 1, s.rows, s.cols};
  } else {
    float* to = s.form == Form::kTransposed ? spare : v.data;
    if (s.form != Form::kPlain) {
      for (int r = 0; r < s.rows; ++r) {
#pragma GCC ivdep
        for (int c = 0; c < s.cols; ++c) to[r * C + c] = to_float(s.source[r * s.ld + c]);
      }
      if (to == v.data) s.form = Form::kPlain;
    }
    return {to, C, 1, s.rows, s.cols};
  }
}

// Operand A. A transposed one is read in place, the other way round.
template <class T, int R, int C>
CRIA_FN Matrix operand_a(View<T, R, C> v, float* spare) {
  return plain_floats(v, spare);
}
template <class V>
CRIA_FN Matrix operand_a(Transposed<V> v, float* spare) {
  const Matrix m = plain_floats(v.view, spare);
  return {m.data, m.step, m.stride, m.inner, m.outer};
}
template <class T, class L>
CRIA_FN Matrix operand_a(const Operand<T, L>& a, float*) {
  return {a.v, L::cols, 1, L::rows, L::cols};
}

// Operand B, rows k of all N columns: outer counts valid k, columns outside the tensor are zero.
template <class T, int R, int C>
CRIA_FN Matrix operand_b(View<T, R, C> v, float* spare) {
  auto& s = *v.stage;
  Matrix m = plain_floats(v, spare);
  if (m.inner == C) return m;
  // A block cut off at the tensor's edge: zeros take the place of what is not there.
  float* to = m.data == v.data || s.form == Form::kFetched ? v.data : spare;
  if (to != m.data) {
    for (int r = 0; r < m.outer; ++r)
      for (int c = 0; c < m.inner; ++c) to[r * C + c] = m.data[r * m.stride + c];
  }
  for (int r = 0; r < m.outer; ++r)
    for (int c = m.inner; c < C; ++c) to[r * C + c] = 0.f;
  return {to, C, 1, m.outer, C};
}
template <class T, int R, int C>
CRIA_FN Matrix operand_b(Transposed<View<T, R, C>> v, float* spare) {
  auto& s = *v.view.stage;
  float* data = v.view.data;
  if (s.form == Form::kWritten) {
    transpose_block(data, C, R, C, spare, R);
    return {spare, R, 1, C, R};
  }
  float* to = s.form == Form::kPlain ? spare : data;
  if (s.form != Form::kTransposed) {
    transpose_block(s.source, s.ld, s.rows, s.cols, to, R);
    for (int c = 0; c < s.cols; ++c)
      for (int r = s.rows; r < R; ++r) to[c * R + r] = 0.f;
    if (to == data) s.form = Form::kTransposed;
  }
  return {to, R, 1, s.cols, R};
}

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
