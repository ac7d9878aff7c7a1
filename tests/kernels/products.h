// Matrix products in double, and how far computed ones may be from them, element by element.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "support/compare.h"
#include "tile/kernel.h"

namespace cria::test {

// The sums, and the sums of their terms' magnitudes.
struct Products {
  int cols;
  std::vector<double> sums, sizes;

  double sum(int r, int c) const { return sums[int64_t{r} * cols + c]; }
  double size(int r, int c) const { return sizes[int64_t{r} * cols + c]; }
};

// Of m x k elements a(i, l) and k x n elements b(l, j).
template <class A, class B>
Products products_of(int m, int n, int k, A a, B b) {
  const int64_t size = int64_t{m} * n;
  Products out{n, std::vector<double>(size), std::vector<double>(size)};
  std::vector<double> rows;
  for (int l = 0; l < k; ++l)
    for (int j = 0; j < n; ++j) rows.push_back(b(l, j));
  for (int i = 0; i < m; ++i)
    for (int l = 0; l < k; ++l) {
      const double x = a(i, l), *row = rows.data() + int64_t{l} * n;
      double *sums = out.sums.data() + int64_t{i} * n, *sizes = out.sizes.data() + int64_t{i} * n;
      for (int j = 0; j < n; ++j) sums[j] += x * row[j], sizes[j] += std::abs(x * row[j]);
    }
  return out;
}

// What tensor cores may take off a term. fp32 is cut to two tf32 parts, and the product of the small
// ones left out.
template <class T>
double term_roundoff(tile::DotPrecision precision) {
  if (sizeof(T) == 2) return 0;
  return 2 * kRoundoffTf32 * (precision == tile::DotPrecision::kTf32 ? 1 : kRoundoffTf32);
}
// What a sum of so many terms, of that size in all, may be off by.
template <class T>
double product_error(int length, double size, tile::DotPrecision precision) {
  return sum_error(length, size, term_roundoff<T>(precision));
}
// What rounding a value to T on the way adds to that.
template <class T>
double rounding_error(double value) {
  return Tolerance{.out = dtype_of<T>, .length = 0}.bound(value);
}

}  // namespace cria::test
