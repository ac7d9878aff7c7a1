#include "lab/accuracy.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include "base/rng.h"
#include "runtime/thread_pool.h"

namespace cria {
namespace {

constexpr double kWorkBudget = 4e7;  // about a second on one core
constexpr int64_t kMinRows = 16, kMinCols = 64;
constexpr int64_t kWideRow = 1 << 22;  // beyond this, columns are fetched one by one
constexpr int64_t kColsOfWideRow = 10000;

// Up to `most` of 0 .. n-1, in order, with both ends.
std::vector<int64_t> sample(int64_t n, int64_t most) {
  std::vector<int64_t> out(std::min(n, most));
  if (n <= most) {
    std::iota(out.begin(), out.end(), int64_t{0});
    return out;
  }
  Rng rng(static_cast<uint64_t>(n));
  for (size_t i = 0; i < out.size(); ++i)  // one from each of `most` equal parts
    out[i] = static_cast<int64_t>((double(i) + rng.uniform()) / double(out.size()) * double(n));
  out.front() = 0;
  out.back() = n - 1;
  return out;
}

std::vector<double> fetch(const Operand& output, int64_t row, std::span<const int64_t> cols) {
  std::vector<double> out;
  const int64_t begin = row * output.cols();
  if (output.cols() > kWideRow) {
    for (int64_t c : cols) out.push_back(output.fetched(begin + c, 1)[0]);
    return out;
  }
  const std::vector<double> all = output.fetched(begin, output.cols());
  for (int64_t c : cols) out.push_back(all[c]);
  return out;
}

Accuracy compare(DType type, const ErrorBound& bound, std::span<const double> got,
                 std::span<const Exact> want) {
  Accuracy result;
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(got[i] - want[i].value);
    result.include({error, error <= bound.of(type, want[i])});
  }
  return result;
}

}  // namespace

void Accuracy::include(const Accuracy& other) {
  if (std::isnan(other.max_error) || other.max_error > max_error) max_error = other.max_error;
  ok = ok && other.ok;
}

double ErrorBound::of(DType out, const Exact& exact) const {
  return Tolerance{out, length, exact.norm, inner}.bound(exact.value);
}

Accuracy check_output(const Operand& output, const ErrorBound& bound, double work,
                      const ExactRow& exact) {
  const double affordable = kWorkBudget / std::max(work, 1.0);
  int64_t most_cols = std::max(kMinCols, static_cast<int64_t>(affordable / kMinRows));
  if (output.cols() > kWideRow) most_cols = std::min(most_cols, kColsOfWideRow);
  const std::vector<int64_t> cols = sample(output.cols(), most_cols);
  if (cols.empty()) return {};
  const int64_t most_rows =
      std::max(kMinRows, static_cast<int64_t>(affordable / double(cols.size())));
  const std::vector<int64_t> rows = sample(output.rows(), most_rows);

  std::vector<std::vector<double>> got(rows.size());
  for (size_t r = 0; r < rows.size(); ++r) got[r] = fetch(output, rows[r], cols);

  Accuracy total;
  std::mutex mutex;
  ThreadPool::shared().run(static_cast<int64_t>(rows.size()), [&](int64_t r, int) {
    std::vector<Exact> want(cols.size());
    exact(rows[r], cols, want);
    const Accuracy row = compare(output.dtype(), bound, got[r], want);
    const std::lock_guard lock(mutex);
    total.include(row);
  });
  return total;
}

}  // namespace cria
