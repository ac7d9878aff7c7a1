#include "base/quantile.h"

#include <algorithm>

#include "base/error.h"

namespace cria {

double quantile(std::vector<double> values, double fraction) {
  require(!values.empty(), "quantile: there are no values");
  std::sort(values.begin(), values.end());
  const double place = fraction * double(values.size() - 1);
  const size_t below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - double(below)) * (values[above] - values[below]);
}

}  // namespace cria
