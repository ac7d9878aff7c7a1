// y = x wᵀ (+ residual) for a few rows of x: bound by reading w, once.
#pragma once

#include "kernels/list.h"
#include "kernels/unrolled.h"

namespace cria::kernels {

// Rows x Cols of w at a time, for up to Few rows of x.
template <int Few, int Rows, int Cols, int Threads>
struct GemvConfig {
  static constexpr int few = Few, rows = Rows, cols = Cols, threads = Threads;
  static std::string name() {
    return "few" + std::to_string(few) + "_tile" + std::to_string(rows) + "x" +
           std::to_string(cols) + "_threads" + std::to_string(threads);
  }
};

template <class T>
struct GemvArgs {
  using Element = T;
  static constexpr const char* kernel = "gemv";
  Tensor<const T> x;              // [M, K], M at most 8
  Tensor<const T> w;              // [N, K]
  Tensor<T> y;                    // [M, N]
  Tensor<const T> residual = {};  // [M, N], may be y; none when data is null

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("w", w);
    visit("y", y, element_wise), visit("residual", residual, element_wise);
  }
  Dims dims() const { return {{"m", y.rows}, {"n", y.cols}, {"k", x.cols}}; }
  Cost cost() const {
    if (y.size() == 0) return {};
    return {.flops = 2.0 * y.size() * x.cols + double(residual.size()),
            .bytes_read = double(x.bytes() + w.bytes() + residual.bytes()),
            .bytes_written = double(y.bytes())};
  }
};

// A program multiplies C::rows rows of w, and adds up along them at the end.
template <class T, class C>
struct Gemv {
  using Element = T;
  using Config = C;
  using Args = GemvArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static bool fits(const Args& a) { return a.y.rows <= C::few; }
  static Grid grid(const Args& a) { return {a.y.rows > 0 ? ceil_div(a.y.cols, C::rows) : 0}; }

  // While x is still being made, weights come nearer: of all programs that there is room for, no
  // more than fits a cache.
  template <class P>
  CRIA_FN static void ahead(P& p, const Args& a) {
    constexpr int kMostCols = (64 << 10) / (C::rows * int(sizeof(T)));
    const int r0 = p.program_id(0) * C::rows;
    for (int start = 0; start < min_of(a.x.cols, kMostCols); start += C::cols)
      p.prefetch(a.w, shape<C::rows, C::cols>, r0, start);
  }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int r0 = p.program_id(0) * C::rows, m = a.y.rows, k = a.x.cols;
    auto zero = p.full_rows(p.zeros(shape<C::rows, C::cols>), 0.f);
    decltype(zero) total[C::few];  // for each row of x, one part per thread
    unrolled<C::few>([&](int i) { total[i] = zero; });
    for (int start = 0; start < k; start += C::cols) {
      auto w = p.load(a.w, shape<C::rows, C::cols>, r0, start);
      auto j = p.arange(shape<C::cols>) + start;
      unrolled<C::few>([&](int i) {
        if (i >= m) return;
        auto x = p.load(cols_of(w), a.x.row(i), j, j < k);
        total[i] += p.partial_sum(w * x, axis<1>);
      });
    }
    auto out = column(p.arange(shape<C::rows>) + r0) + row(p.arange(shape<1>));
    const Mask inside{a.y.cols - r0, 1};
    unrolled<C::few>([&](int i) {
      if (i >= m) return;
      auto added = zero;  // loaded by all that hold an element before any of them stores it
      if (a.residual.data) added = p.load(layout_of(zero), a.residual.row(i), out, inside);
      p.combine(total[i]);
      p.store(a.y.row(i), out, total[i] + added, inside);
    });
  }
};

template <class T>
using GemvKernels =
    KernelList<KernelSpace<Gemv, T, GemvConfig<1, 8, 2048, 256>, GemvConfig<1, 4, 1024, 128>,
                           GemvConfig<2, 8, 2048, 256>, GemvConfig<4, 4, 2048, 256>,
                           GemvConfig<8, 4, 2048, 256>>>;

}  // namespace cria::kernels
