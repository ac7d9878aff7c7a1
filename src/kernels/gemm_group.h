// Several independent products in one launch:  c = aᵀ b  each, such as the gradients of a block's
// weights, whose tiles together fill a device that each of them alone would leave half empty.
#pragma once

#include "kernels/gemm.h"
#include "kernels/unrolled.h"

namespace cria::kernels {

inline constexpr int kGemmParts = 4;

template <class T>
struct GemmGroupArgs {
  using Element = T;
  static constexpr const char* kernel = "gemm_group";
  struct Part {
    Tensor<const T> a;  // [K, M]
    Tensor<const T> b;  // [K, N]
    Tensor<T> c;        // [M, N]; an empty one ends the list
  };
  Part parts[kGemmParts];
  DotPrecision precision = DotPrecision::kFp32;  // of fp32 operands

  template <class V>
  constexpr void operands(V&& visit) {
    for (Part& p : parts) visit("a", p.a), visit("b", p.b), visit("c", p.c);
  }
  Dims dims() const {
    int64_t elements = 0;
    for (const Part& p : parts) elements += p.c.size();
    return {
        {"elements", elements}, {"k", parts[0].a.rows}, {"tf32", precision == DotPrecision::kTf32}};
  }
  Cost cost() const {
    Cost sum;
    for (const Part& p : parts)
      if (p.c.size() > 0)
        sum += {.flops = 2.0 * p.c.size() * p.a.rows,
                .bytes_read = double(p.a.bytes() + p.b.bytes()),
                .bytes_written = double(p.c.bytes())};
    return sum;
  }
};

template <class T, class C>
struct GemmGroup {
  using Element = T;
  using Config = C;
  using Args = GemmGroupArgs<T>;
  using Shared = GemmShared<T, C, true, false>;
  static constexpr Traits traits = C::traits;
  static bool fits(const Args& a) { return multiplies_in<T, C>(a.precision); }
  static bool suits(const Args& a, int cores) { return enough_tiles<C>(grid(a).x, cores); }
  static Grid grid(const Args& a) {
    int64_t tiles = 0;
    for (const auto& part : a.parts) tiles += tile_count<C>(part.c);
    return {tiles};
  }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    int tiles = 0;
    for (const auto& part : a.parts) tiles += tile_count<C>(part.c);
    p.for_tiles(tiles, [&](int t) {
      auto part = a.parts[0];
      int first = 0, next = 0;
      unrolled<kGemmParts>([&](int i) {
        if (t >= next) part = a.parts[i], first = next;
        next += tile_count<C>(a.parts[i].c);
      });
      const TileIndex at =
          p.banded(t - first, ceil_div(part.c.rows, C::m), ceil_div(part.c.cols, C::n), C::band);
      gemm_tile<C, true, false>(p, part.a, part.b, part.c, s, at.row * C::m, at.col * C::n,
                                [](auto&, auto&) {});
    });
  }
};

template <class T>
using GemmGroupKernels = KernelList<typename GemmSpaceOf<GemmGroup, T>::type>;

}  // namespace cria::kernels
