#include "support/compare.h"

namespace cria::test {

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
  const double sum = out == DType::i32 ? 0 : 4 * std::sqrt(double(length)) * roundoff(DType::f32);
  return 2 * roundoff(out) * std::abs(want) + (2 * inner + sum) * scale + tiny(out);
}

double norm(std::span<const double> values) {
  double sum = 0;
  for (const double x : values) sum += x * x;
  return std::sqrt(sum);
}

namespace detail {

bool is_close(double got, double want, double want_rounded, const Tolerance& tolerance) {
  if (std::isnan(got) || std::isnan(want)) return false;
  if (std::isinf(got) || std::isinf(want)) return got == want || got == want_rounded;
  return std::abs(got - want) <= tolerance.bound(want);
}

std::string describe_index(size_t index, int64_t cols) {
  std::ostringstream out;
  out << '[' << index << ']';
  if (cols > 0) {
    const auto i = static_cast<int64_t>(index);
    out << " (row " << i / cols << ", column " << i % cols << ')';
  }
  return out.str();
}

}  // namespace detail
}  // namespace cria::test
