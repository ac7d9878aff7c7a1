// Writing expressions to memory: never beyond the mask, and past the caches when a launch writes more
// than they hold.
#pragma once

#include "tile/cpu/expr.h"
#include "tile/cpu/vector.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

// Columns [begin, end) of row r to to[0], to[step], ...
template <Region R, class T, class X>
CRIA_FN void store_run(T* to, int64_t step, const X& x, int r, int begin, int end) {
  if (step == 1) {
#pragma GCC ivdep
    for (int c = begin; c < end; ++c) to[c] = narrow<T>(x.template at<R>(r, c));
  } else {
#pragma GCC ivdep
    for (int c = begin; c < end; ++c) to[c * step] = narrow<T>(x.template at<R>(r, c));
  }
}

// The same for contiguous columns, whole cache lines of them without reading the destination.
template <Region R, class T, class X>
CRIA_FN void stream_run(T* to, const X& x, int r, int begin, int end) {
  constexpr int kPerLine = kLine / sizeof(T), kPiece = 8 * kPerLine;
  alignas(kLine) T piece[kPiece];
  while (begin < end && reinterpret_cast<uintptr_t>(to + begin) % kLine == 0 && end - begin >= kPerLine) {
    const int count = min_of((end - begin) / kPerLine * kPerLine, kPiece);
#pragma GCC ivdep
    for (int c = 0; c < count; ++c) piece[c] = narrow<T>(x.template at<R>(r, begin + c));
    stream_lines(to + begin, piece, count * int64_t{sizeof(T)});
    begin += count;
  }
  store_run<R>(to, 1, x, r, begin, end);
}

// Stream: whether the launch is large enough to bypass the caches.
template <class T, class Off, class X>
CRIA_FN void store_node(T* base, Off off, const X& x, Mask mask, bool stream) {
  using L = typename X::Layout;
  static_assert(Off::rows == L::rows && Off::cols == L::cols, "store: offsets and tile differ in shape");
  const int rows = clip(mask.rows, L::rows), cols = clip(mask.cols, L::cols);
  const Extent extent = x.extent();
  if (cols == 0) return;
  for (int r = 0; r < rows; ++r) {
    T* to = base + off(r, 0);
    each_run(extent, r, cols, [&](auto region, int begin, int end) {
      constexpr Region R = decltype(region)::value;
      if (Off::unit && R == Region::kInside && stream)
        stream_run<R>(to, x, r, begin, end);
      else
        store_run<R>(to, Off::unit ? 1 : off(0, 1) - off(0, 0), x, r, begin, end);
    });
  }
}

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
