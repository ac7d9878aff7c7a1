// Sums in a fixed order, so that the same numbers give the same result every time.
//   sum         out = sum of x: each share of x is summed by one program, and after a grid-wide
//               barrier one program adds up the shares
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
  Tensor<float> partials;  // [P], one for each share of x: see sum_partials
  Tensor<float> out;       // [1]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("partials", partials), visit("out", out, element_wise);
  }
  Dims dims() const { return {{"n", x.cols}, {"partials", partials.cols}}; }
  Cost cost() const {
    return {.flops = (Of == Term::kSquare ? 2.0 : 1.0) * x.size() + double(partials.size()),
            .bytes_read = double(x.bytes() + partials.bytes()),
            .bytes_written = double(partials.bytes() + out.bytes())};
  }
};
template <class T>
using SumArgs = SumOfArgs<T, Term::kItself>;
template <class T>
using SumSquaresArgs = SumOfArgs<T, Term::kSquare>;

// Shares that divide evenly among a device's cores (see runtime/device.h), whichever configuration
// runs.
constexpr int sum_partials(int cores) { return cores * 8; }

// Resident: programs per multiprocessor, which all work at once.
template <int Block, int Threads, int Resident>
struct SumConfig : BlockConfig<Block, Threads> {
  static constexpr int resident = Resident;
  static std::string name() {
    return BlockConfig<Block, Threads>::name() + "_resident" + std::to_string(resident);
  }
};

template <class T, class C, Term Of>
struct SumOf {
  using Element = T;
  using Config = C;
  using Args = SumOfArgs<T, Of>;
  static constexpr Traits traits{
      .threads = C::threads, .min_blocks = C::resident, .persistent = true, .cooperative = true};
  static Grid grid(const Args& a) { return {a.partials.cols}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int shares = a.partials.cols;
    auto cols = p.arange(shape<C::cols>);
    p.for_tiles(shares, [&](int share) {
      auto total = p.zeros(shape<C::cols>);
      for (int64_t start = int64_t{share} * C::cols; start < a.x.cols;
           start += int64_t{shares} * C::cols) {
        auto i = cols + start;
        auto x = p.load(a.x.data, i, i < a.x.cols);
        if constexpr (Of == Term::kSquare)
          total += x * x;
        else
          total += x;
      }
      p.store(a.partials.data + share, p.sum(total));
    });
    p.grid_sync();
    if (p.program_id(0) > 0) return;
    auto total = p.zeros(shape<C::cols>);
    for (int start = 0; start < shares; start += C::cols) {
      auto i = cols + start;
      total += p.load_fresh(a.partials.data, i, i < shares);
    }
    p.store(a.out.data, p.sum(total));
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
using SumSpace = KernelSpace<K, T, SumConfig<4096, 256, 4>, SumConfig<4096, 512, 2>>;

template <class T>
using ReductionKernels =
    KernelList<SumSpace<Sum, T>, SumSpace<SumSquares, T>,
               KernelSpace<ColumnSum, T, TileConfig<64, 32, 256>, TileConfig<64, 64, 256>>>;

}  // namespace cria::kernels
