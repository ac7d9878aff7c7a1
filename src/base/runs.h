// Where the elements of a file's tensor lie in memory: `outer` times `middle` runs of `inner`
// neighbours, in the file's order.
#pragma once

#include <cstdint>

namespace cria {

struct Runs {
  int64_t outer = 1, middle = 1, inner = 0;
  int64_t outer_step = 0, middle_step = 0;  // elements in memory

  constexpr int64_t size() const { return outer * middle * inner; }

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
};

}  // namespace cria
