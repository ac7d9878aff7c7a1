// How far a result is from float64, and whether that is far: rows and columns are sampled where
// there are many, first and last always among them. NaN is never close.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lab/operand.h"

namespace cria {

struct Accuracy {
  double max_error = 0;  // largest |got - exact|; NaN when a result is
  bool ok = true;        // every error within its bound

  void include(const Accuracy& other);
};

// What the bound on an error is derived from:
//   2 u(out) |exact| + (2 inner + 4 sqrt(length) u(f32)) max(|exact|, norm),
// u a type's rounding error: the result's own rounding, and that of a sum of `length` terms in f32,
// which were rounded to `inner` on the way.
struct ErrorBound {
  int64_t length = 1;
  double inner = 0;
  double of(DType out, const Exact& exact) const;
};

// Largest relative error of one rounding to the type.
double roundoff(DType type);
inline constexpr double kRoundoffTf32 = 0x1p-11;

// Fills in the exact values of some columns of a row; rows of all matrices are counted through.
using ExactRow = std::function<void(int64_t row, std::span<const int64_t> cols, std::span<Exact>)>;

// Compares what an output holds with the exact values. `work` is about how many operations one
// exact value takes: it decides how many can be looked at.
Accuracy check_output(const Operand& output, const ErrorBound& bound, double work,
                      const ExactRow& exact);

}  // namespace cria
