// Matrix products on tensors, by the library: what plans use for the model's linear layers and for
// attention with materialised scores.
#pragma once

#include "base/dtype.h"
#include "base/error.h"
#include "base/tensor.h"
#include "runtime/product.h"

namespace cria {

// Which operand of a product is stored transposed.
enum class Transposed { none, a, b };

// c = alpha op(a) op(b) [+ addend] for each matrix of the batch.
template <class T>
void multiply(Stream& stream, Precision precision, Transposed transposed, Tensor<const T> a,
              Tensor<const T> b, Tensor<T> c, float alpha = 1, Tensor<const T> addend = {}) {
  const bool ta = transposed == Transposed::a, tb = transposed == Transposed::b;
  require(!addend.data || addend.ld == c.ld, "a product and what is added to it differ in layout");
  const Product product{.m = c.rows,
                        .n = c.cols,
                        .k = ta ? a.rows : a.cols,
                        .trans_a = ta,
                        .trans_b = tb,
                        .in = dtype_of<T>,
                        .out = dtype_of<T>,
                        .precision = precision,
                        .alpha = alpha,
                        .beta = addend.data ? 1.f : 0.f,
                        .lda = a.ld,
                        .ldb = b.ld,
                        .ldc = c.ld,
                        .batch = c.batch,
                        .stride_a = a.batch_stride,
                        .stride_b = b.batch_stride,
                        .stride_c = c.batch_stride};
  multiply(stream, product, a.data, b.data, c.data, 0, addend.data);
}

// A weight of a WeightMap with the gaps behind its columns and its rows.
template <class T>
constexpr Tensor<T> whole_weight(Tensor<T> w) {
  w.rows = pitch_of(w.rows);
  return with_gaps(w);
}

// A linear layer's three products; its weight w is [N, K]. They run over the gaps, which are zeros
// and stay so: the library is several times slower at sizes that are no whole 16 bytes.
template <class T>
void linear(Stream& stream, Precision precision, Tensor<const T> x, Tensor<const T> w, Tensor<T> y,
            Tensor<const T> addend = {}) {
  multiply(stream, precision, Transposed::b, with_gaps(x), whole_weight(w), with_gaps(y), 1,
           with_gaps(addend));
}
// y = x wᵀ, so dx = dy w
template <class T>
void linear_dx(Stream& stream, Precision precision, Tensor<const T> dy, Tensor<const T> w,
               Tensor<T> dx) {
  multiply(stream, precision, Transposed::none, with_gaps(dy), whole_weight(w), with_gaps(dx));
}
// and dw = dyᵀ x
template <class T>
void linear_dw(Stream& stream, Precision precision, Tensor<const T> dy, Tensor<const T> x,
               Tensor<T> dw) {
  multiply(stream, precision, Transposed::a, with_gaps(dy), with_gaps(x), whole_weight(dw));
}

}  // namespace cria
