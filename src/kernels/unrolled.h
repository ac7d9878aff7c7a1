// Loops of known length over arrays of tiles, which a GPU keeps in registers.
#pragma once

#include <utility>

#include "tile/target.h"

namespace cria::kernels {

// f(0), f(1), ..., f(N - 1).
template <int N, class F>
CRIA_FN void unrolled(F f) {
  [&]<int... I>(std::integer_sequence<int, I...>) { (f(I), ...); }
  (std::make_integer_sequence<int, N>{});
}

}  // namespace cria::kernels
