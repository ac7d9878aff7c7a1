// How far a result is from float64, and whether that is far: rows and columns are sampled where
// there are many, first and last always among them. NaN is never close.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/rounding.h"
#include "lab/operand.h"

namespace cria {

struct Accuracy {
  double max_error = 0;  // largest |got - exact|; NaN when a result is
  bool ok = true;        // every error within its bound

  void include(const Accuracy& other);
};

// What a Tolerance is derived from besides the output's type and the exact value with its norm.
struct ErrorBound {
  int64_t length = 1;
  double inner = 0;
  double of(DType out, const Exact& exact) const;
};

// Fills in the exact values of some columns of a row; rows of all matrices are counted through.
using ExactRow = std::function<void(int64_t row, std::span<const int64_t> cols, std::span<Exact>)>;

// Compares what an output holds with the exact values. `work` is about how many operations one
// exact value takes: it decides how many can be looked at.
Accuracy check_output(const Operand& output, const ErrorBound& bound, double work,
                      const ExactRow& exact);

}  // namespace cria
