// RMSNorm, backward. With y = x r w, r = (mean(x²) + eps)^-½ and g = dy w:
//   dr/dx[i] = -r³ x[i] / n,  so  dx = r g - x r³ mean(g x)  [+ add, by another path]
//   dw = sum over rows of dy x r
// and y once more, if wanted, with the bits of the forward pass.
// Every P-th row belongs to one share of the work. A program keeps the share's sum of dw in
// registers and leaves one row of partial sums, and column_sum (reduction.h) adds those up in a
// fixed order.
#pragma once

#include <type_traits>

#include "kernels/rows.h"

namespace cria::kernels {

template <class T>
struct RmsNormBackwardArgs {
  using Element = T;
  static constexpr const char* kernel = "rmsnorm_backward";
  Tensor<const T> x;         // [R, D], what the forward pass normalised
  Tensor<const T> w;         // [D]
  Tensor<const float> r;     // [R, 1], saved by the forward pass
  Tensor<const T> dy;        // [R, D]
  Tensor<const T> add = {};  // [R, D], added to dx; none when data is null
  Tensor<T> dx;              // [R, D], may be dy or add
  Tensor<T> y = {};          // [R, D], f32 and bf16 only; not written when data is null
  Tensor<float> partials;    // [P, D], one row for each share: see shares.h
  int terms = 0;             // as in RmsNormForwardArgs

  constexpr int mean_of() const { return terms > 0 ? terms : x.cols; }
  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("w", w), visit("r", r, element_wise), visit("dy", dy), visit("add", add);
    visit("dx", dx), visit("y", y), visit("partials", partials);
  }
  Dims dims() const { return {{"rows", x.rows}, {"cols", x.cols}, {"partials", partials.rows}}; }
  Cost cost() const {
    if (x.size() == 0) return {.bytes_written = double(partials.bytes())};
    return {.flops = 11.0 * x.size() + 2.0 * y.size(),
            .bytes_read = double(x.bytes() + w.bytes() + r.bytes() + dy.bytes() + add.bytes()),
            .bytes_written = double(dx.bytes() + y.bytes() + partials.bytes())};
  }
};

// Resident: programs per multiprocessor, which all work at once; 1, 2 or 4.
template <int Rows, int Cols, int Threads, int Resident, bool Walks = false>
struct RmsNormBackwardConfig : RowConfig<Rows, Cols, Threads, Walks> {
  static constexpr int resident = Resident;
  // Where threads have few registers, y would cost spills, and the rest 3 % of its speed.
  static constexpr bool writes_y = Threads * Resident <= 512;
  static std::string name() {
    return TileConfig<Rows, Cols, Threads>::name() + "_resident" + std::to_string(Resident);
  }
};

template <class T, class C>
struct RmsNormBackward {
  using Element = T;
  using Config = C;
  using Args = RmsNormBackwardArgs<T>;
  static constexpr Traits traits{
      .threads = C::threads, .min_blocks = C::resident, .persistent = true};
  static constexpr bool writes_y = C::writes_y && !std::is_same_v<T, f16>;  // nothing trains in f16
  static bool fits(const Args& a) { return C::fits(a.x.cols) && (writes_y || !a.y.data); }
  static Grid grid(const Args& a) { return {a.x.cols > 0 ? a.partials.rows : 0}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    p.for_tiles(a.partials.rows, [&](int share) {
      if (a.x.cols <= C::cols)
        run_share(p, a, share);
      else if constexpr (C::walks)
        run_wide_share(p, a, share);
    });
  }

 private:
  template <class P>
  CRIA_FN static void run_share(P& p, const Args& a, int share) {
    constexpr auto tile = shape<C::rows, C::cols>;
    auto dw = p.zeros(tile);
    const int step = a.partials.rows * C::rows;
    auto x = p.load(a.x, tile, share * C::rows, 0), dy = p.load(a.dy, tile, share * C::rows, 0);
    for (int r0 = share * C::rows; r0 < a.x.rows; r0 += step) {
      auto next_x = p.load(a.x, tile, r0 + step, 0), next_dy = p.load(a.dy, tile, r0 + step, 0);
      auto add = p.load(a.add, tile, r0, 0);  // zeros, from no memory, when there is none
      auto w = p.load(cols_of(x), a.w, 0, 0);
      auto r = p.keep(p.load(rows_of(x), a.r, r0, 0));
      auto pull = p.sum(dy * w * x, axis<1>) * (r * r * r) / a.mean_of();
      dw += dy * x * r;
      p.store(a.dx, dy * w * r - x * pull + add, r0, 0);
      if constexpr (writes_y)
        if (a.y.data) p.store(a.y, x * r * w, r0, 0);
      x = next_x, dy = next_dy;  // like add, on their way since before the sum
    }
    p.store(a.partials, p.sum(dw, axis<0>), share, 0);
  }

  // Rows that do not fit are read twice for dx and once more, block by block, for dw; dw comes
  // first because dx may overwrite dy.
  template <class P>
  CRIA_FN static void run_wide_share(P& p, const Args& a, int share) {
    constexpr auto block = shape<1, C::cols>;
    const int n = a.x.cols, shares = a.partials.rows;
    for (int start = 0; start < n; start += C::cols) {
      auto dw = p.zeros(block);
      for (int row = share; row < a.x.rows; row += shares) {
        const float r = p.load(a.r.row(row));
        dw += p.load(a.dy, block, row, start) * p.load(a.x, block, row, start) * r;
      }
      p.store(a.partials, dw, share, start);
    }
    for (int row = share; row < a.x.rows; row += shares) {
      float dot = 0;
      for (int start = 0; start < n; start += C::cols)
        dot += p.sum(p.load(a.dy, block, row, start) * p.load(a.w, block, 0, start) *
                     p.load(a.x, block, row, start));
      const float r = p.load(a.r.row(row)), pull = dot * r * r * r / a.mean_of();
      for (int start = 0; start < n; start += C::cols) {
        auto x = p.load(a.x, block, row, start), dy = p.load(a.dy, block, row, start);
        auto w = p.load(a.w, block, 0, start);
        auto dx = dy * w * r - x * pull;
        if (a.add.data)
          p.store(a.dx, dx + p.load(a.add, block, row, start), row, start);
        else
          p.store(a.dx, dx, row, start);
        if constexpr (writes_y)
          if (a.y.data) p.store(a.y, x * r * w, row, start);
      }
    }
  }
};

// First choice first.
template <class T>
struct RmsNormBackwardSpace {
  template <int Rows, int Cols, int Threads, int Resident, bool Walks = false>
  using Config = RmsNormBackwardConfig<Rows, Cols, Threads, Resident, Walks>;
  using type = KernelSpace<RmsNormBackward, T, Config<64, 64, 256, 2>, Config<16, 256, 256, 2>,
                           Config<2, 512, 128, 4>, Config<4 / sizeof(T), 1024, 128, 4>,
                           Config<1, 2048, 64 * sizeof(T), 8 / sizeof(T)>, Config<1, 4096, 512, 2>,
                           Config<1, 8192, 512, 1, true>>;
};

template <class T>
using RmsNormBackwardKernels = KernelList<typename RmsNormBackwardSpace<T>::type>;

}  // namespace cria::kernels
