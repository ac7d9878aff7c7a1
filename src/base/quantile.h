// Order statistics of measurements.
#pragma once

#include <vector>

namespace cria {

// `fraction` between 0 (the least) and 1 (the largest) of the values, interpolated.
double quantile(std::vector<double> values, double fraction);

}  // namespace cria
