// Rows of a table by token, and the gradient that flows back into the table.
//   forward   y[r] = table[tokens[r]]
//   backward  dtable[t] += sum of dy[r] over all r with tokens[r] = t
// The backward pass wants the positions sorted by token (sort_tokens): each distinct token is the
// business of programs of their own, which add its rows in fp32, in order, without atomics.
#pragma once

#include <span>

#include "kernels/config.h"
#include "kernels/list.h"

namespace cria::kernels {

template <class T>
struct EmbeddingForwardArgs {
  using Element = T;
  static constexpr const char* kernel = "embedding_forward";
  Tensor<const int32_t> tokens;  // [R], each in 0 ... V - 1
  Tensor<const T> table;         // [V, D]
  Tensor<T> y;                   // [R, D]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("tokens", tokens, element_wise), visit("table", table), visit("y", y);
  }
  Dims dims() const { return {{"rows", y.rows}, {"cols", y.cols}}; }
  // For tokens that all differ.
  Cost cost() const {
    if (y.size() == 0) return {};
    return {.bytes_read = double(tokens.bytes() + y.bytes()), .bytes_written = double(y.bytes())};
  }
};

template <class T, class C>
struct EmbeddingForward {
  using Element = T;
  using Config = C;
  using Args = EmbeddingForwardArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) {
    return {a.y.cols > 0 ? a.y.rows : 0, ceil_div(a.y.cols, C::cols)};
  }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int r = p.program_id(0), n = a.y.cols;
    auto j = p.arange(shape<C::cols>) + p.program_id(1) * C::cols;
    const int token = p.load(a.tokens.data + r);
    p.store(a.y.row(r), j, p.load(a.table.row(token), j, j < n), j < n);
  }
};

template <class T>
struct EmbeddingBackwardArgs {
  using Element = T;
  static constexpr const char* kernel = "embedding_backward";
  Tensor<const int32_t> order;   // [R], positions sorted by token
  Tensor<const int32_t> starts;  // [R + 1], where each distinct token's run begins in order, then R
  Tensor<const int32_t> ids;     // [R], the distinct tokens; unused past their count
  Tensor<const T> dy;            // [R, D]
  Tensor<T> dtable;              // [V, D], added to

  template <class V>
  constexpr void operands(V&& visit) {
    visit("order", order, element_wise), visit("starts", starts, element_wise);
    visit("ids", ids, element_wise), visit("dy", dy), visit("dtable", dtable);
  }
  Dims dims() const { return {{"rows", dy.rows}, {"cols", dy.cols}}; }
  // For as many distinct tokens as there can be.
  Cost cost() const {
    if (dy.size() == 0) return {};
    const int distinct = min_of(dy.rows, dtable.rows);
    const double touched = double(sizeof(T)) * distinct * dy.cols;
    return {.flops = double(dy.size()),
            .bytes_read = double(order.bytes() + starts.bytes()) + sizeof(int32_t) * distinct +
                          double(dy.bytes()) + touched,
            .bytes_written = touched};
  }
};

// What embedding_backward reads, from R tokens: order [R], starts [R + 1], ids [R].
void sort_tokens(std::span<const int32_t> tokens, std::span<int32_t> order,
                 std::span<int32_t> starts, std::span<int32_t> ids);

// Program i takes distinct token i, if there is one. C::rows of its rows are on their way at a
// time: a frequent token may have thousands.
template <class T, class C>
struct EmbeddingBackward {
  using Element = T;
  using Config = C;
  using Args = EmbeddingBackwardArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) {
    return {a.dy.cols > 0 ? a.dy.rows : 0, ceil_div(a.dy.cols, C::cols)};
  }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int i = p.program_id(0), n = a.dy.cols;
    int k = p.load(a.starts.data + i);
    const int end = p.load(a.starts.data + i + 1);
    if (k >= end) return;
    auto j = p.arange(shape<C::cols>) + p.program_id(1) * C::cols;
    T* to = a.dtable.row(p.load(a.ids.data + i));
    auto total = p.keep(p.load(to, j, j < n));
    const auto row = [&](int k) { return p.load(a.dy.row(p.load(a.order.data + k)), j, j < n); };
    for (; k + C::rows <= end; k += C::rows) total += sum_of<C::rows>(row, k);
    for (; k + 4 <= end; k += 4) total += sum_of<4>(row, k);
    for (; k < end; ++k) total += row(k);
    p.store(to, j, total, j < n);
  }

 private:
  template <int N, class Row>
  CRIA_FN static auto sum_of(const Row& row, int k) {
    if constexpr (N == 1)
      return row(k);
    else
      return sum_of<N / 2>(row, k) + sum_of<N / 2>(row, k + N / 2);
  }
};

template <class T>
using EmbeddingKernels = KernelList<
    KernelSpace<EmbeddingForward, T, BlockConfig<1024, 128>, BlockConfig<2048, 128>>,
    KernelSpace<EmbeddingBackward, T, TileConfig<16, 1024, 128>, TileConfig<8, 512, 64>>>;

}  // namespace cria::kernels
