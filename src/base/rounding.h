// How far a computed value may lie from the exact one: the one place tolerances are derived.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace cria {

// Largest relative error of one rounding to the type; 0 for integers.
double roundoff(DType type);
inline constexpr double kRoundoffTf32 = 0x1p-11;

// For an output w that sums `length` terms in f32, with sum of |terms| <= norm:
//   |got - w| <= 2 u(out) |w|  +  (2 inner + 4 sqrt(length) u(f32)) max(|w|, norm)  +  error
//                + tiny(out)
// The first term stores the result (2, because a correct but differently ordered sum may fall on
// the other side of a rounding boundary); the second is the probabilistic bound of a sum, in which
// rounding errors partly cancel, with room for a few elementary functions; `error` is what an
// element's own terms allow it; the last is the smallest step of the output type.
struct Tolerance {
  DType out = DType::f32;  // the type the result is stored in
  int64_t length = 1;      // terms summed into one output, in f32
  double norm = 0;         // bound on sum of |terms|; 0: the result itself is the scale
  double inner = 0;        // roundoff() of the narrowest type terms were rounded to on the way
  double error = 0;

  double bound(double want) const;
};

// The second term alone.
double sum_error(int64_t length, double norm, double inner = 0);

// How far, relative to its length, a tensor may be from the exact one after so many stages that
// each round with this relative error: the errors add like a random walk, with room for sums.
double stages_bound(double roundoff, double stages);

// The same after so many roundings to a 16-bit type, the sums in between being f32: one is off by
// 0.42 roundoff in the root mean square (uniform in half a unit in the last place, which is between
// 1/2 and 1 roundoff of the value), and twice that is allowed.
double roundings_bound(double roundoff, double roundings);

}  // namespace cria
