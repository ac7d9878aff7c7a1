// Sums in a fixed order, so that the same numbers give the same result every time.
//   sum         out = sum of x: each share of x is summed by one program, and one more, which
//               waits for them, adds up the shares
//   sum_squares out = sum of x²
//   column_sum  y[c] = sum over rows of x[r, c], for partial results that programs left behind
#pragma once

#include "kernels/config.h"
#include "kernels/list.h"

namespace cria::kernels {

enum class Term { kItself, kSquare };  // what is added up

template <class T, Term Of>
struct SumOfArgs {
  using Element = T;
  static constexpr const char* kernel = Of == Term::kSquare ? "sum_squares" : "sum";
  Tensor<const T> x;       // [N]
  Tensor<float> partials;  // [P], one for each share of x: see shares.h
  Tensor<int32_t> signal;  // [1], zero before and after
  Tensor<float> out;       // [1]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("partials", partials), visit("signal", signal, element_wise);
    visit("out", out, element_wise);
  }
  Dims dims() const { return {{"n", x.cols}, {"partials", partials.cols}}; }
  Cost cost() const {
    return {.flops = (Of == Term::kSquare ? 2.0 : 1.0) * x.size() + shares(),
            .bytes_read = double(x.bytes() + (shares() > 0 ? partials.bytes() : 0)),
            .bytes_written = double(sizeof(float)) * shares() + double(out.bytes())};
  }
  // Elements that are summed in one go, and shares that get any.
  static constexpr int block = 4096;
  constexpr int shares() const { return min_of(ceil_div(x.cols, block), partials.cols); }
};
template <class T>
using SumArgs = SumOfArgs<T, Term::kItself>;
template <class T>
using SumSquaresArgs = SumOfArgs<T, Term::kSquare>;

// Resident: programs per multiprocessor that the registers must allow.
template <int Threads, int Resident>
struct SumConfig {
  static constexpr int threads = Threads, resident = Resident;
  static std::string name() {
    return "threads" + std::to_string(threads) + "_resident" + std::to_string(resident);
  }
};

template <class T, class C, Term Of>
struct SumOf {
  using Element = T;
  using Config = C;
  using Args = SumOfArgs<T, Of>;
  static constexpr Traits traits{.threads = C::threads, .min_blocks = C::resident};
  static Grid grid(const Args& a) { return {a.shares() + 1}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int share = p.program_id(0), shares = a.shares();
    auto total = p.zeros(shape<Args::block>);
    auto cols = p.arange(shape<Args::block>);
    if (share < shares) {
      for (int64_t start = int64_t{share} * Args::block; start < a.x.cols;
           start += int64_t{shares} * Args::block) {
        auto i = cols + start;
        auto x = p.load(a.x.data, i, i < a.x.cols);
        if constexpr (Of == Term::kSquare)
          total += x * x;
        else
          total += x;
      }
      p.store(a.partials.data + share, p.sum(total));
      p.signal(a.signal.data);
    } else {
      p.await(a.signal.data, shares, 1);
      for (int start = 0; start < shares; start += Args::block) {
        auto i = cols + start;
        auto partial = p.load_fresh(a.partials.data, i, i < a.partials.cols);
        total += p.where(i < shares, partial, 0.f);
      }
      p.store(a.out.data, p.sum(total));
    }
  }
};

template <class T, class C>
using Sum = SumOf<T, C, Term::kItself>;
template <class T, class C>
using SumSquares = SumOf<T, C, Term::kSquare>;

template <class T>
struct ColumnSumArgs {
  using Element = T;
  static constexpr const char* kernel = "column_sum";
  Tensor<const float> x;  // [R, D]
  Tensor<T> y;            // [D]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("y", y);
  }
  Dims dims() const { return {{"rows", x.rows}, {"cols", x.cols}}; }
  Cost cost() const {
    return {.flops = double(x.size()),
            .bytes_read = double(x.bytes()),
            .bytes_written = double(y.bytes())};
  }
};

template <class T, class C>
struct ColumnSum {
  using Element = T;
  using Config = C;
  using Args = ColumnSumArgs<T>;
  static constexpr int vec = 4;  // of x, whatever the type of y
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return {ceil_div(a.x.cols, C::cols)}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int c0 = p.program_id(0) * C::cols;
    auto total = p.zeros(shape<C::rows, C::cols>);
    for (int r0 = 0; r0 < a.x.rows; r0 += C::rows)
      total += p.load(a.x, shape<C::rows, C::cols>, r0, c0);
    p.store(a.y, p.sum(total, axis<0>), 0, c0);
  }
};

template <template <class, class> class K, class T>
using SumSpace = KernelSpace<K, T, SumConfig<256, 4>, GpuOnly<SumConfig<512, 2>>>;

template <class T>
using ReductionKernels =
    KernelList<SumSpace<Sum, T>, SumSpace<SumSquares, T>,
               KernelSpace<ColumnSum, T, TileConfig<128, 32, 256>, TileConfig<64, 64, 256>>>;

}  // namespace cria::kernels
