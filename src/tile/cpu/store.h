// Writing expressions to memory: never beyond the mask, and past the caches when a launch writes
// more than they hold.
#pragma once

#include "tile/cpu/convert.h"
#include "tile/cpu/expr.h"
#include "tile/cpu/vector.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

// Elements [begin, begin + count) of row r, to to[0], to[1], ...
template <Region R, class T, class X>
CRIA_FN void narrow_run(T* to, const X& x, int r, int begin, int count) {
  if constexpr (std::is_same_v<T, f16>) {
    constexpr int kPiece = 256;
    alignas(kLine) float piece[kPiece];
    for (int done = 0; done < count; done += kPiece) {
      const int n = min_of(count - done, kPiece);
#pragma GCC ivdep
      for (int c = 0; c < n; ++c)
        piece[c] = static_cast<float>(x.template at<R>(r, begin + done + c));
      narrow_array(piece, to + done, n);
    }
  } else {
#pragma GCC ivdep
    for (int c = 0; c < count; ++c) to[c] = narrow<T>(x.template at<R>(r, begin + c));
  }
}

// The same without reading the destination or keeping it in the caches, as far as it is whole
// pieces of lines. Small ones: computing and writing take turns often enough to overlap.
template <Region R, class T, class X>
CRIA_FN void stream_run(T* to, const X& x, int r, int begin, int count) {
  constexpr int kPerLine = kLine / sizeof(T), kPiece = 2 * kPerLine;
  alignas(kLine) T piece[kPiece];
  int done = 0;
  if (reinterpret_cast<uintptr_t>(to) % kLine == 0) {
    for (; count - done >= kPiece; done += kPiece) {
      narrow_run<R>(piece, x, r, begin + done, kPiece);
      stream_lines(to + done, piece, sizeof(piece));
    }
  }
  narrow_run<R>(to + done, x, r, begin + done, count - done);
}

// Stream: whether the launch is large enough to bypass the caches.
template <class T, class Off, class X>
CRIA_FN void store_node(T* base, Off off, const X& x, Mask mask, bool stream) {
  using L = typename X::Layout;
  static_assert(Off::rows == L::rows && Off::cols == L::cols,
                "store: offsets and tile differ in shape");
  const int rows = clip(mask.rows, L::rows), cols = clip(mask.cols, L::cols);
  const Extent extent = x.extent();
  if (cols == 0) return;
  for (int r = 0; r < rows; ++r) {
    T* to = base + off(r, 0);
    each_run(extent, r, cols, [&](auto region, int begin, int end) {
      constexpr Region R = decltype(region)::value;
      if constexpr (Off::unit) {
        if (R == Region::kInside && stream)
          stream_run<R>(to + begin, x, r, begin, end - begin);
        else
          narrow_run<R>(to + begin, x, r, begin, end - begin);
      } else {
        const int64_t step = off(0, 1) - off(0, 0);
#pragma GCC ivdep
        for (int c = begin; c < end; ++c) to[c * step] = narrow<T>(x.template at<R>(r, c));
      }
    });
  }
}

// Both halves of an element at once: x may be computed from what they were.
template <class Off, class X>
CRIA_FN void store_split_node(bf16* high, int16_t* low, Off off, const X& x, Mask mask) {
  using L = typename X::Layout;
  static_assert(Off::rows == L::rows && Off::cols == L::cols,
                "store_split: offsets and tile differ in shape");
  const int rows = clip(mask.rows, L::rows), cols = clip(mask.cols, L::cols);
  const Extent extent = x.extent();
  for (int r = 0; r < rows; ++r)
    each_run(extent, r, cols, [&](auto region, int begin, int end) {
#pragma GCC ivdep
      for (int c = begin; c < end; ++c) {
        const float e = x.template at<decltype(region)::value>(r, c);
        high[off(r, c)] = high_half(e);
        low[off(r, c)] = low_half(e);
      }
    });
}

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
