// Softmax of rows: bound by memory.
#include "kernels/softmax.h"

#include <algorithm>
#include <cmath>

#include "lab/problems/problems.h"

namespace cria {
namespace {

class Softmax final : public Problem {
 public:
  explicit Softmax(const ProblemRequest& request) : Problem(request) {
    const int rows = request["rows"], cols = request["cols"];
    plan_sets(2.0 * rows * cols * size_of(dtype()));
    for (int set = 0; set < sets(); ++set) {
      const Operand& x = input(1, rows, cols);
      const Operand& y = output(1, rows, cols);
      if (set == 0) x_ = &x, y_ = &y;
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call("softmax", kernels::SoftmaxForwardArgs<T>{x.tensor<T>(), y.tensor<T>()});
      });
    }
  }

  Ceiling ceiling() const override { return copy_ceiling(device(), cost().bytes()); }

 private:
  Accuracy check_results() const override {
    const int64_t n = x_->cols();
    return check_output(*y_, {.length = n}, 8, [&](int64_t row, auto cols, auto want) {
      const std::vector<double> x = x_->held(row * n, n);
      const double top = *std::max_element(x.begin(), x.end());
      double total = 0;
      for (double v : x) total += std::exp(v - top);
      for (size_t i = 0; i < cols.size(); ++i) want[i].value = std::exp(x[cols[i]] - top) / total;
    });
  }

  const Operand *x_ = nullptr, *y_ = nullptr;
};

// y and dy are any numbers here: the formula does not ask for rows that add up to 1.
class SoftmaxBackward final : public Problem {
 public:
  explicit SoftmaxBackward(const ProblemRequest& request) : Problem(request) {
    const int rows = request["rows"], cols = request["cols"];
    plan_sets(3.0 * rows * cols * size_of(dtype()));
    for (int set = 0; set < sets(); ++set) {
      const Operand& y = input(1, rows, cols, 1 / std::sqrt(float(cols)));
      const Operand& dy = input(1, rows, cols);
      const Operand& dx = output(1, rows, cols);
      if (set == 0) y_ = &y, dy_ = &dy, dx_ = &dx;
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call("softmax_backward",
                 kernels::SoftmaxBackwardArgs<T>{y.tensor<T>(), dy.tensor<T>(), dx.tensor<T>()});
      });
    }
  }

  Ceiling ceiling() const override { return copy_ceiling(device(), cost().bytes()); }

 private:
  Accuracy check_results() const override {
    const int64_t n = y_->cols();
    return check_output(*dx_, {.length = n}, 4, [&](int64_t row, auto cols, auto want) {
      const std::vector<double> y = y_->held(row * n, n), dy = dy_->held(row * n, n);
      double mean = 0, norm = 0;
      for (int64_t j = 0; j < n; ++j) mean += y[j] * dy[j], norm += std::abs(y[j] * dy[j]);
      for (size_t i = 0; i < cols.size(); ++i) {
        const double weight = y[cols[i]], slope = dy[cols[i]];
        want[i] = {weight * (slope - mean), std::abs(weight) * (std::abs(slope) + norm)};
      }
    });
  }

  const Operand *y_ = nullptr, *dy_ = nullptr, *dx_ = nullptr;
};

}  // namespace

std::vector<ProblemSpec> softmax_problems() {
  const std::vector<Parameter> matrix = {{"rows", "rows of the matrix", 4096, 65536},
                                         {"cols", "columns of the matrix", 1024, 4096}};
  return {
      {"softmax", "softmax of the rows of a matrix", matrix, {"softmax_forward"}, make<Softmax>},
      {"softmax_backward",
       "softmax of rows, backward",
       matrix,
       {"softmax_backward"},
       make<SoftmaxBackward>}};
}

}  // namespace cria
