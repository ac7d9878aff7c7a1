#include "support/compare.h"

namespace cria::test {

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
