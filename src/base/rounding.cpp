#include "base/rounding.h"

#include <algorithm>
#include <cmath>

namespace cria {

double roundoff(DType type) {
  switch (type) {
    case DType::f32:
      return 0x1p-24;
    case DType::bf16:
      return 0x1p-8;
    case DType::f16:
      return 0x1p-11;
    case DType::i32:
      return 0;
  }
  return 0;
}

namespace {

// The smallest positive value; f32 and bf16 flush subnormals on the CPU, so there it is a normal.
double tiny(DType type) {
  switch (type) {
    case DType::f32:
    case DType::bf16:
      return 0x1p-126;
    case DType::f16:
      return 0x1p-24;
    case DType::i32:
      return 0;
  }
  return 0;
}

}  // namespace

double Tolerance::bound(double want) const {
  const double scale = std::max(std::abs(want), norm);
  const int64_t rounded = out == DType::i32 ? 0 : length;
  return 2 * roundoff(out) * std::abs(want) + sum_error(rounded, scale, inner) + error + tiny(out);
}

double sum_error(int64_t length, double norm, double inner) {
  return (2 * inner + 4 * std::sqrt(double(length)) * roundoff(DType::f32)) * norm;
}

double stages_bound(double roundoff, double stages) { return 4 * roundoff * std::sqrt(stages); }

double roundings_bound(double roundoff, double roundings) {
  return 2 * 0.42 * roundoff * std::sqrt(roundings);
}

}  // namespace cria
