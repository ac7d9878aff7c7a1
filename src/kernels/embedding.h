// Rows of a table by token, and the gradient that flows back into the table.
//   forward   y[r] = table[tokens[r]]
//   backward  dtable[t] += sum of dy[r] over all r with tokens[r] = t
// The backward pass wants the positions sorted by token (sort_tokens): each distinct token is the
// business of programs of their own, which add its rows in fp32, in order, without atomics.
#pragma once

#include <span>

#include "kernels/config.h"
#include "kernels/list.h"
#include "kernels/unrolled.h"

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
  // For tokens that all differ: a row of the table that several want is read once.
  static constexpr bool costs_at_most = true;
  Cost cost() const {
    if (y.size() == 0) return {};
    return {.bytes_read = double(tokens.bytes() + y.bytes()), .bytes_written = double(y.bytes())};
  }
};

// A program copies C::rows rows: all are on their way before the first is stored.
template <class T, class C>
struct EmbeddingForward {
  using Element = T;
  using Config = C;
  using Args = EmbeddingForwardArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static bool suits(const Args& a, int cores) {
    return C::rows == 1 || a.y.rows >= int64_t{4} * C::rows * cores;
  }
  static Grid grid(const Args& a) {
    return {a.y.cols > 0 ? ceil_div(a.y.rows, C::rows) : 0, ceil_div(a.y.cols, C::cols)};
  }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int r = p.program_id(0) * C::rows, last = a.y.rows - 1, n = a.y.cols;
    auto j = p.arange(shape<C::cols>) + p.program_id(1) * C::cols;
    int token[C::rows];
    decltype(p.load(a.table.data, j, j < n)) row[C::rows];
    unrolled<C::rows>([&](int i) { token[i] = p.load(a.tokens.data + min_of(r + i, last)); });
    unrolled<C::rows>([&](int i) { row[i] = p.load(a.table.row(token[i]), j, j < n); });
    unrolled<C::rows>([&](int i) {
      const auto x = row[i];
      if (r + i <= last) p.store(a.y.row(r + i), j, x, j < n);
    });
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
  // For as many distinct tokens as there can be: fewer are fewer rows of the table.
  static constexpr bool costs_at_most = true;
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

// A program adds up C::cols columns of one token's rows. A frequent token may have thousands:
// C::rows of them are on their way at a time, and their positions before them. Every configuration
// adds in the same order: kPiece rows in pairs of pairs, then piece after piece.
template <class T, class C>
struct EmbeddingBackward {
  using Element = T;
  using Config = C;
  using Args = EmbeddingBackwardArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static constexpr int kPiece = 16;
  static_assert(C::rows % kPiece == 0, "EmbeddingBackward: rows come in whole pieces");

  // Few tokens leave cores idle unless their columns are shared out.
  static bool suits(const Args& a, int cores) {
    return C::rows == kPiece || tokens(a) < int64_t{16} * cores;
  }
  static Grid grid(const Args& a) { return {int64_t{tokens(a)} * blocks(a)}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int i = p.program_id(0) / blocks(a), c = p.program_id(0) % blocks(a) * C::cols;
    const int begin = p.load(a.starts.data + i), end = p.load(a.starts.data + i + 1);
    if (begin >= end) return;
    const int width = a.dy.cols - c;
    T* to = a.dtable.row(p.load(a.ids.data + i)) + c;
    if (width >= C::cols)
      add_rows(p, a, begin, end, c, to, Mask{});  // loads without a test are half the instructions
    else
      add_rows(p, a, begin, end, c, to, Mask{.cols = width});
  }

 private:
  static constexpr int tokens(const Args& a) { return min_of(a.dy.rows, a.dtable.rows); }
  static constexpr int blocks(const Args& a) { return ceil_div(a.dy.cols, C::cols); }

  // to += the rows at positions k ... end - 1 of the order, from column c on
  template <class P>
  CRIA_FN static void add_rows(P& p, const Args& a, int k, int end, int c, T* to, Mask inside) {
    auto j = p.arange(shape<C::cols>);
    auto total = p.keep(p.load(to, j, inside));
    const T* dy = a.dy.data + c;
    const auto ld = static_cast<uint32_t>(a.dy.ld);  // so that r * ld is one multiplication
    const auto row = [&](int r) {
      return p.load(dy + uint64_t{static_cast<uint32_t>(r)} * ld, j, inside);
    };
    int ahead[C::rows];  // positions
    const auto look_ahead = [&](int k) {
      unrolled<C::rows>([&](int i) { ahead[i] = p.load(a.order.data + k + i); });
    };
    if (k + C::rows <= end) look_ahead(k);
    for (; k + C::rows <= end; k += C::rows) {
      unrolled<C::rows / kPiece>([&](int piece) {
        total += sum_of<kPiece>([&](int i) { return row(ahead[piece * kPiece + i]); });
      });
      look_ahead(min_of(k + C::rows, a.order.cols - C::rows));
    }
    const auto add_all = [&]<int N>(Shape<N>) {
      for (; k + N <= end; k += N)
        total += sum_of<N>([&](int i) { return row(p.load(a.order.data + k + i)); });
    };
    add_all(shape<kPiece>);
    add_all(shape<8>), add_all(shape<4>), add_all(shape<2>), add_all(shape<1>);
    p.store(to, j, total, inside);
  }

  // row(first) + ... + row(first + N - 1)
  template <int N, class Row>
  CRIA_FN static auto sum_of(const Row& row, int first = 0) {
    if constexpr (N == 1)
      return row(first);
    else
      return sum_of<N / 2>(row, first) + sum_of<N / 2>(row, first + N / 2);
  }
};

// Bytes of a row per thread: 4, so that a warp reads a whole cache line, or 16.
template <class T>
using NarrowRows = TileConfig<64, 32 * 4 / sizeof(T), 32>;
template <class T>
using WideRows = TileConfig<16, 128 * 16 / sizeof(T), 128>;

template <class T>
using EmbeddingKernels =
    KernelList<KernelSpace<EmbeddingForward, T, TileConfig<8, 1024, 128>, BlockConfig<1024, 128>>,
               KernelSpace<EmbeddingBackward, T, NarrowRows<T>, WideRows<T>>>;

}  // namespace cria::kernels
