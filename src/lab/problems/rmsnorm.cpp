// RMSNorm: bound by memory, so the copy of as many bytes is the ceiling.
#include "kernels/rmsnorm.h"

#include <cmath>

#include "kernels/reduction.h"
#include "kernels/rmsnorm_backward.h"
#include "kernels/shares.h"
#include "lab/problems/problems.h"

namespace cria {
namespace {

constexpr double kEps = 1e-5f;

double inverse_rms(const std::vector<double>& x) {
  double squares = 0;
  for (double v : x) squares += v * v;
  return 1 / std::sqrt(squares / double(x.size()) + kEps);
}

class RmsNorm final : public Problem {
 public:
  explicit RmsNorm(const ProblemRequest& request) : Problem(request) {
    const int rows = request["rows"], cols = request["cols"];
    plan_sets(2.0 * rows * cols * size_of(dtype()));
    for (int set = 0; set < sets(); ++set) {
      const Operand& x = input(1, rows, cols);
      const Operand& w = input(1, 1, cols, 0.1f, 1);
      const Operand& y = output(1, rows, cols);
      if (set == 0) x_ = &x, w_ = &w, y_ = &y;
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call("rmsnorm",
                 kernels::RmsNormForwardArgs<T>{x.tensor<T>(), w.tensor<T>(), y.tensor<T>()});
      });
    }
  }

  Ceiling ceiling() const override { return copy_ceiling(device(), cost().bytes()); }

 private:
  Accuracy check_results() const override {
    const int64_t n = x_->cols();
    const std::vector<double> w = w_->held(0, n);
    return check_output(*y_, {.length = n}, 4, [&](int64_t row, auto cols, auto want) {
      const std::vector<double> x = x_->held(row * n, n);
      const double r = inverse_rms(x);
      for (size_t i = 0; i < cols.size(); ++i) want[i].value = x[cols[i]] * r * w[cols[i]];
    });
  }

  const Operand *x_ = nullptr, *w_ = nullptr, *y_ = nullptr;
};

// h = x + residual is a result of its own, and is rounded before it is normalised.
class AddRmsNorm final : public Problem {
 public:
  explicit AddRmsNorm(const ProblemRequest& request) : Problem(request) {
    const int rows = request["rows"], cols = request["cols"];
    plan_sets(4.0 * rows * cols * size_of(dtype()));
    for (int set = 0; set < sets(); ++set)
      data_.push_back({&input(1, rows, cols), &input(1, rows, cols), &input(1, 1, cols, 0.1f, 1),
                       &output(1, rows, cols), &output(1, rows, cols)});
    for (const Set& s : data_)
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call("add_rmsnorm", kernels::AddRmsNormForwardArgs<T>{
                                    s.x->tensor<T>(), s.residual->tensor<T>(), s.w->tensor<T>(),
                                    s.h->tensor<T>(), s.y->tensor<T>()});
      });
  }

  Ceiling ceiling() const override { return copy_ceiling(device(), cost().bytes()); }

 private:
  struct Set {
    const Operand *x, *residual, *w, *h, *y;
  };

  std::vector<double> sum_of_row(int64_t row) const {
    const Set& s = data_[0];
    const int64_t n = s.x->cols();
    std::vector<double> h = s.x->held(row * n, n);
    const std::vector<double> residual = s.residual->held(row * n, n);
    for (int64_t j = 0; j < n; ++j) h[j] += residual[j];
    return h;
  }

  Accuracy check_results() const override {
    const Set& s = data_[0];
    const int64_t n = s.x->cols();
    const std::vector<double> w = s.w->held(0, n);
    Accuracy total = check_output(*s.h, {.length = 2}, 2, [&](int64_t row, auto cols, auto want) {
      const std::vector<double> h = sum_of_row(row);
      for (size_t i = 0; i < cols.size(); ++i) want[i] = {h[cols[i]], 1};
    });
    const ErrorBound rounded{.length = n, .inner = roundoff(dtype())};
    total.include(check_output(*s.y, rounded, 8, [&](int64_t row, auto cols, auto want) {
      const std::vector<double> h = sum_of_row(row);
      const double r = inverse_rms(h);
      for (size_t i = 0; i < cols.size(); ++i) want[i].value = h[cols[i]] * r * w[cols[i]];
    }));
    return total;
  }

  std::vector<Set> data_;
};

// dx, and dw through partial sums that a second kernel adds up.
class RmsNormBackward final : public Problem {
 public:
  explicit RmsNormBackward(const ProblemRequest& request) : Problem(request) {
    const int rows = request["rows"], cols = request["cols"];
    const int shares = shares_of(request, kernels::rmsnorm_shares(device(), rows));
    plan_sets(3.0 * rows * cols * size_of(dtype()));
    for (int set = 0; set < sets(); ++set)
      data_.push_back({&input(1, rows, cols), &input(1, 1, cols, 0.1f, 1),
                       &scratch_of(DType::f32, 1, rows, 1), &input(1, rows, cols),
                       &output(1, rows, cols), &scratch_of(DType::f32, 1, shares, cols),
                       &output(1, 1, cols)});
    with_float(dtype(), [&](auto t) { add_kernels<decltype(t)>(); });
    const Operand &x = *data_[0].x, &w = *data_[0].w, &r = *data_[0].r;
    set_cost({.flops = 11.0 * double(x.size()),
              .bytes_read = double(2 * x.bytes() + w.bytes() + r.bytes()),
              .bytes_written = double(x.bytes() + w.bytes())});
  }

  Ceiling ceiling() const override { return copy_ceiling(device(), cost().bytes()); }

 private:
  struct Set {
    const Operand *x, *w, *r, *dy, *dx, *partials, *dw;
  };

  template <class T>
  void add_kernels() {
    for (const Set& s : data_)
      add_call("rmsnorm_backward",
               kernels::RmsNormBackwardArgs<T>{.x = s.x->tensor<T>(),
                                               .w = s.w->tensor<T>(),
                                               .r = s.r->tensor<float>(),
                                               .dy = s.dy->tensor<T>(),
                                               .dx = s.dx->tensor<T>(),
                                               .partials = s.partials->tensor<float>()});
    set_after("rmsnorm_backward", [this](Stream& stream, int turn) {
      const Set& s = data_[turn % data_.size()];
      launch(stream, kernels::ColumnSumArgs<T>{s.partials->tensor<float>(), s.dw->tensor<T>()});
    });
  }

  // What the forward pass saves; the output y goes where dx will be.
  void prepare(Stream& stream) override {
    with_float(dtype(), [&](auto t) {
      using T = decltype(t);
      for (const Set& s : data_)
        launch(stream, kernels::RmsNormForwardArgs<T>{s.x->tensor<T>(), s.w->tensor<T>(),
                                                      s.dx->tensor<T>(), s.r->tensor<float>()});
    });
  }

  Accuracy check_results() const override {
    const Set& s = data_[0];
    const int64_t n = s.x->cols(), rows = s.x->rows();
    const std::vector<double> w = s.w->held(0, n);
    Accuracy total = check_output(*s.dx, {.length = n}, 12, [&](int64_t row, auto cols, auto want) {
      const std::vector<double> x = s.x->held(row * n, n), dy = s.dy->held(row * n, n);
      const double r = inverse_rms(x);
      double pull = 0, norm = 0;
      for (int64_t j = 0; j < n; ++j)
        pull += dy[j] * w[j] * x[j], norm += std::abs(dy[j] * w[j] * x[j]);
      for (size_t i = 0; i < cols.size(); ++i) {
        const double a = r * dy[cols[i]] * w[cols[i]], b = x[cols[i]] * r * r * r / double(n);
        want[i] = {a - b * pull, std::abs(a) + std::abs(b) * norm};
      }
    });
    // Every column of dw takes all of x: a few columns, and the r that the kernel was given.
    const std::vector<double> r = s.r->fetched(0, rows);
    total.include(check_output(*s.dw, {.length = rows}, 8.0 * double(rows),
                               [&](int64_t, auto cols, auto want) {
                                 for (size_t i = 0; i < cols.size(); ++i) {
                                   const std::vector<double> x = s.x->held(cols[i], rows, n),
                                                             dy = s.dy->held(cols[i], rows, n);
                                   for (int64_t row = 0; row < rows; ++row) {
                                     const double term = dy[row] * x[row] * r[row];
                                     want[i].value += term, want[i].norm += std::abs(term);
                                   }
                                 }
                               }));
    return total;
  }

  std::vector<Set> data_;
};

}  // namespace

std::vector<ProblemSpec> rmsnorm_problems() {
  const std::vector<Parameter> matrix = {{"rows", "rows of the matrix", 4096, 65536},
                                         {"cols", "columns of the matrix", 1024, 4096}};
  std::vector<Parameter> shared = matrix;
  shared.push_back(shares_parameter());
  return {
      {"rmsnorm", "RMSNorm of the rows of a matrix", matrix, {"rmsnorm_forward"}, make<RmsNorm>},
      {"add_rmsnorm",
       "residual addition and RMSNorm in one kernel",
       matrix,
       {"add_rmsnorm_forward"},
       make<AddRmsNorm>},
      {"rmsnorm_backward",
       "RMSNorm, backward, with the sum of dw over rows",
       shared,
       {"rmsnorm_backward"},
       make<RmsNormBackward>}};
}

}  // namespace cria
