// The one way tests compare tensors: a tolerance derived from types, length and norm, and a failure
// message that says where and by how much. NaN never passes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ranges>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace cria::test {

// Largest relative error of one rounding to the type; 0 for integers.
double roundoff(DType type);
inline constexpr double kRoundoffTf32 = 0x1p-11;

// How far a computed value may lie from the exact one. For an output w that sums `length` terms in
// f32, with sum of |terms| <= norm:
//   |got - w| <= 2 u(out) |w|  +  (2 inner + 4 sqrt(length) u(f32)) max(|w|, norm)  +  tiny(out)
// The first term stores the result (2, because a correct but differently ordered sum may fall on
// the other side of a rounding boundary); the second is the probabilistic bound of a sum, in which
// rounding errors partly cancel, with room for a few elementary functions; the last is the smallest
// step of the output type.
struct Tolerance {
  DType out = DType::f32;  // the type the result is stored in
  int64_t length = 1;      // terms summed into one output, in f32
  double norm = 0;         // bound on sum of |terms|; 0: the result itself is the scale
  double inner = 0;        // roundoff() of the narrowest type terms were rounded to on the way

  double bound(double want) const;
};

// sqrt(sum of squares); norm(a) * norm(b) bounds sum |a_i b_i|.
double norm(std::span<const double> values);

template <class T>
std::vector<double> to_double(std::span<const T> values) {
  std::vector<double> out(values.size());
  std::ranges::transform(values, out.begin(), [](T x) { return double{to_float(x)}; });
  return out;
}

namespace detail {
// `want_rounded` is what `want` becomes when rounded to the output type: infinite past its range.
bool is_close(double got, double want, double want_rounded, const Tolerance& tolerance);
std::string describe_index(size_t index, int64_t cols);
}  // namespace detail

// Fails unless got[i] is within tolerance of want[i] for all i. `cols` makes the message name row
// and column of a matrix.
template <std::ranges::contiguous_range Got>
void expect_close(const Got& got, std::span<const double> want, const Tolerance& tolerance,
                  std::string_view name, int64_t cols = 0) {
  using T = std::ranges::range_value_t<Got>;
  const std::span<const T> values(std::ranges::data(got), std::ranges::size(got));
  if (values.size() != want.size()) {
    ADD_FAILURE() << name << ": " << values.size() << " elements, want " << want.size();
    return;
  }
  size_t off = 0, first = 0, worst = 0;
  double worst_excess = -1;
  for (size_t i = 0; i < want.size(); ++i) {
    const double x = to_float(values[i]);
    const double rounded = to_float(from_float<T>(static_cast<float>(want[i])));
    if (detail::is_close(x, want[i], rounded, tolerance)) continue;
    if (off++ == 0) first = i;
    const double error = std::abs(x - want[i]);
    const double excess = std::isnan(error) ? INFINITY : error / tolerance.bound(want[i]);
    if (excess > worst_excess) {
      worst_excess = excess;
      worst = i;
    }
  }
  if (off == 0) return;
  std::ostringstream message;
  message.precision(9);
  const auto describe = [&](const char* label, size_t i) {
    message << "\n  " << label << ' ' << detail::describe_index(i, cols) << ": got "
            << to_float(values[i]) << ", want " << want[i] << ", tolerance "
            << tolerance.bound(want[i]);
  };
  message << name << " (" << name_of(dtype_of<T>) << "): " << off << " of " << want.size()
          << " off";
  describe("first", first);
  if (worst != first) describe("worst", worst);
  ADD_FAILURE() << message.str();
}

}  // namespace cria::test
