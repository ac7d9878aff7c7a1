// Derivatives by hand are checked against derivatives by central differences, in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace cria::test {

// Fails unless gradient[i] is the derivative of loss by x[i], for every i.
void expect_gradient(std::vector<double> x, std::span<const double> gradient,
                     const std::function<double(const std::vector<double>&)>& loss,
                     std::string_view name);

}  // namespace cria::test
