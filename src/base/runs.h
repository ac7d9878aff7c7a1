// Where the elements of a file's tensor lie in memory: `outer` times `middle` runs of `inner`
// neighbours, in the file's order.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cria {

struct Runs {
  int64_t outer = 1, middle = 1, inner = 0;
  int64_t outer_step = 0, middle_step = 0;  // elements in memory

  constexpr int64_t size() const { return outer * middle * inner; }
  // Elements of memory from the first to the last, those between runs included.
  constexpr int64_t extent() const {
    return size() == 0 ? 0 : (outer - 1) * outer_step + (middle - 1) * middle_step + inner;
  }

  // Calls f(place in memory, place in the file, count) for each run; runs that touch are one.
  template <class F>
  constexpr void each(F&& f) const {
    const bool rows_touch = middle == 1 || middle_step == inner;
    const int64_t row = rows_touch ? middle * inner : inner;
    if (rows_touch && (outer == 1 || outer_step == row)) return f(int64_t{0}, int64_t{0}, size());
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t m = 0; m < (rows_touch ? 1 : middle); ++m)
        f(o * outer_step + m * middle_step, (o * middle + m) * inner, row);
  }

  // The same of what lies in [begin, end) of memory; runs are cut to it. Steps must not go back.
  template <class F>
  constexpr void each_within(int64_t begin, int64_t end, F&& f) const {
    const bool rows_touch = middle == 1 || middle_step == inner;
    const bool all_touch = rows_touch && (outer == 1 || outer_step == middle * inner);
    const int64_t run = all_touch ? size() : rows_touch ? middle * inner : inner;
    const int64_t outers = all_touch ? 1 : outer, middles = rows_touch ? 1 : middle;
    const auto at = [](int64_t place, int64_t step) {  // the last that begins there or before
      return step > 0 ? std::max<int64_t>(0, place) / step : 0;
    };
    for (int64_t o = at(begin, outers > 1 ? outer_step : 0); o < outers; ++o) {
      const int64_t base = o * outer_step;
      if (base >= end) return;
      for (int64_t m = at(begin - base, middles > 1 ? middle_step : 0); m < middles; ++m) {
        const int64_t place = base + m * middle_step;
        if (place >= end) break;
        const int64_t from = std::max(place, begin), to = std::min(place + run, end);
        if (from < to) f(from, (o * middle + m) * inner + from - place, to - from);
      }
    }
  }
};

}  // namespace cria
