// The one way tests compare tensors: a tolerance (base/rounding.h) and a failure message that says
// where and by how much. NaN never passes.
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
#include "base/rounding.h"

namespace cria::test {

using cria::kRoundoffTf32;
using cria::roundoff;
using cria::sum_error;
using cria::Tolerance;

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
// and column of a matrix. `errors`, if any, are the tolerance's for each element.
template <std::ranges::contiguous_range Got>
void expect_close(const Got& got, std::span<const double> want, const Tolerance& tolerance,
                  std::string_view name, int64_t cols = 0, std::span<const double> errors = {}) {
  using T = std::ranges::range_value_t<Got>;
  const std::span<const T> values(std::ranges::data(got), std::ranges::size(got));
  if (values.size() != want.size()) {
    ADD_FAILURE() << name << ": " << values.size() << " elements, want " << want.size();
    return;
  }
  const auto tolerance_of = [&](size_t i) {
    Tolerance own = tolerance;
    if (!errors.empty()) own.error = errors[i];
    return own;
  };
  size_t off = 0, first = 0, worst = 0;
  double worst_excess = -1;
  for (size_t i = 0; i < want.size(); ++i) {
    const double x = to_float(values[i]);
    const double rounded = to_float(from_float<T>(static_cast<float>(want[i])));
    if (detail::is_close(x, want[i], rounded, tolerance_of(i))) continue;
    if (off++ == 0) first = i;
    const double error = std::abs(x - want[i]);
    const double excess = std::isnan(error) ? INFINITY : error / tolerance_of(i).bound(want[i]);
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
            << tolerance_of(i).bound(want[i]);
  };
  message << name << " (" << name_of(dtype_of<T>) << "): " << off << " of " << want.size()
          << " off";
  describe("first", first);
  if (worst != first) describe("worst", worst);
  ADD_FAILURE() << message.str();
}

}  // namespace cria::test
