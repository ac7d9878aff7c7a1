// Softmax over the rows of a batch of matrices, any width.
//   forward   y = exp(z - m) / sum exp(z - m),  z = scale x,  m = max z
//   backward  dx = scale y (dy - sum dy y)
// Causal: row i of a matrix [T, S] sees columns up to i + S - T; elsewhere y is 0, and so is dx.
// A row that fits stays in registers. A wider one is walked twice, with a running maximum m and a
// running sum s: when a block raises m to m', s becomes s exp(m - m') plus the block's own
// exponentials.
#pragma once

#include "kernels/rows.h"

namespace cria::kernels {

inline constexpr float kNothing = -3.4e38f;  // what a row does not see: its exponential is 0

// The maximum of a row and the sum of its exponentials, those of the maximum taken off.
struct RowExponentials {
  float top = kNothing, total = 0;
};

// block(start) is the row from column `start` on, kNothing beyond its end at n.
template <class C, class P, class Block>
CRIA_FN RowExponentials walk_exponentials(P& p, int n, const Block& block) {
  RowExponentials row;
  for (int start = 0; start < n; start += C::cols) {
    auto x = block(start);
    const float higher = max(row.top, p.max(x));
    row.total = row.total * exp(row.top - higher) + p.sum(exp(x - higher));
    row.top = higher;
  }
  return row;
}

template <class T>
struct SoftmaxForwardArgs {
  using Element = T;
  static constexpr const char* kernel = "softmax_forward";
  Tensor<const T> x;    // [B, T, S]
  Tensor<T> y;          // [B, T, S], may be x
  float scale = 1;      // positive
  bool causal = false;  // needs S >= T

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("y", y);
  }
  Dims dims() const { return {{"rows", x.batch * x.rows}, {"cols", x.cols}}; }
  Cost cost() const {
    return {.flops = 6.0 * x.size(),
            .bytes_read = double(x.bytes()),
            .bytes_written = double(y.bytes())};
  }
};

template <class T, class C>
struct SoftmaxForward {
  using Element = T;
  using Config = C;
  using Args = SoftmaxForwardArgs<T>;
  static constexpr Traits traits = C::traits;
  static bool fits(const Args& a) { return C::fits(a.x.cols); }
  static Grid grid(const Args& a) { return row_grid<C>(a.x); }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int r0 = p.program_id(0) * C::rows, b = p.program_id(1), n = a.x.cols;
    const int past = n - a.x.rows;  // columns before the first row's own
    if constexpr (C::rows > 1) {
      auto i = column(p.arange(shape<C::rows>) + r0);
      auto j = row(p.arange(shape<C::cols>));
      auto x = p.load(a.x.matrix(b), i * a.x.ld + j, i < a.x.rows && j < n, kNothing);
      const auto normalise = [&](auto z) {
        auto e = p.keep(exp(z - p.max(z, axis<1>)));
        p.store(a.y, e * (1.f / p.sum(e, axis<1>)), r0, 0, b);
      };
      if (a.causal)
        normalise(p.where(i + past >= j, x * a.scale, kNothing));
      else
        normalise(x * a.scale);
    } else if (n <= C::cols) {
      auto j = p.arange(shape<C::cols>);
      auto x = p.load(a.x.at(b, r0, 0), j, j < n, kNothing);
      auto z = p.where(j < (a.causal ? r0 + past + 1 : n), x * a.scale, kNothing);
      auto e = p.keep(exp(z - p.max(z)));
      p.store(a.y.at(b, r0, 0), j, e * (1.f / p.sum(e)), j < n);
    } else if constexpr (C::walks) {
      const auto normalise = [&](int seen, auto hidden) {
        const auto block = [&](int start) {
          auto j = p.arange(shape<C::cols>) + start;
          return hidden(p.load(a.x.at(b, r0, 0), j, j < n, kNothing) * a.scale, j);
        };
        const RowExponentials row = walk_exponentials<C>(p, seen, block);
        const float share = 1.f / row.total;
        for (int start = 0; start < n; start += C::cols)
          p.store(a.y, exp(block(start) - row.top) * share, r0, start, b);
      };
      const int seen = r0 + past + 1;
      if (a.causal)
        normalise(seen, [&](auto z, auto j) { return p.where(j < seen, z, kNothing); });
      else
        normalise(n, [](auto z, auto) { return z; });
    }
  }
};

template <class T>
struct SoftmaxBackwardArgs {
  using Element = T;
  static constexpr const char* kernel = "softmax_backward";
  Tensor<const T> y;   // [B, T, S]
  Tensor<const T> dy;  // [B, T, S]
  Tensor<T> dx;        // [B, T, S], may be y or dy
  float scale = 1;     // as of the forward pass

  template <class V>
  constexpr void operands(V&& visit) {
    visit("y", y), visit("dy", dy), visit("dx", dx);
  }
  Dims dims() const { return {{"rows", y.batch * y.rows}, {"cols", y.cols}}; }
  Cost cost() const {
    return {.flops = 5.0 * y.size(),
            .bytes_read = double(y.bytes() + dy.bytes()),
            .bytes_written = double(dx.bytes())};
  }
};

template <class T, class C>
struct SoftmaxBackward {
  using Element = T;
  using Config = C;
  using Args = SoftmaxBackwardArgs<T>;
  static constexpr Traits traits = C::traits;
  static bool fits(const Args& a) { return C::fits(a.y.cols); }
  static Grid grid(const Args& a) { return row_grid<C>(a.y); }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int r0 = p.program_id(0) * C::rows, b = p.program_id(1), n = a.y.cols;
    if (n <= C::cols) {
      auto i = column(p.arange(shape<C::rows>) + r0);
      auto j = row(p.arange(shape<C::cols>));
      auto inside = i < a.y.rows && j < n;
      auto y = p.load_packed(a.y.matrix(b), i * a.y.ld + j, inside);
      auto dy = p.load_packed(a.dy.matrix(b), i * a.dy.ld + j, inside);
      auto mean = p.sum(dy * y, axis<1>);  // of dy, weighted by y
      p.store(a.dx, y * (dy - mean) * a.scale, r0, 0, b);
    } else if constexpr (C::walks) {
      float mean = 0;
      for (int start = 0; start < n; start += C::cols)
        mean += p.sum(p.load(a.dy, shape<1, C::cols>, r0, start, b) *
                      p.load(a.y, shape<1, C::cols>, r0, start, b));
      for (int start = 0; start < n; start += C::cols) {
        auto y = p.load(a.y, shape<1, C::cols>, r0, start, b);
        auto dy = p.load(a.dy, shape<1, C::cols>, r0, start, b);
        p.store(a.dx, y * (dy - mean) * a.scale, r0, start, b);
      }
    }
  }
};

template <class T>
using SoftmaxKernels = KernelList<RowSpace<SoftmaxForward, T, 8>, RowSpace<SoftmaxBackward, T>>;

}  // namespace cria::kernels
