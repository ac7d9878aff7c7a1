// The backward pass of SwiGLU's middle in one kernel, against the library's product followed by the
// activation's backward kernel.
#include "kernels/gate_up_backward.h"

#include <cmath>

#include "base/format.h"
#include "lab/problems/problems.h"

namespace cria {
namespace {

class GateUpBackward final : public Problem {
 public:
  explicit GateUpBackward(const ProblemRequest& request)
      : Problem(request), tf32_(request["tf32"] != 0) {
    const int m = request["m"], d = request["dim"], f = request["ffn"];
    product_ = {.m = m,
                .n = f,
                .k = d,
                .in = dtype(),
                .out = dtype(),
                .precision = tf32_ ? Precision::tf32 : Precision::full};
    plan_sets((double(m) * d + double(d) * f + 5.0 * m * f) * size_of(dtype()));
    for (int set = 0; set < sets(); ++set)
      data_.push_back({&input(1, m, d), &input(1, d, f, 1 / std::sqrt(float(d))),
                       &input(1, m, 2 * f), &output(1, m, 2 * f), &output(1, m, f)});
    for (const Set& set : data_) add_kernel(set);
    add_library();
  }

  Ceiling ceiling() const override { return compute_ceiling(device(), dtype(), tf32_); }

 private:
  struct Set {
    const Operand *dy, *down;
    const Operand *values, *gradients;  // gate beside up, and their gradients
    const Operand* y;
  };

  template <class T>
  static Tensor<T> half(const Operand* both, int which) {
    const Tensor<T> t = both->tensor<T>();
    return matrix_of(t.data + which * (t.cols / 2), t.rows, t.cols / 2, t.ld);
  }

  void add_kernel(const Set& set) {
    with_float(dtype(), [&](auto t) {
      using T = decltype(t);
      add_call("gate_up_backward",
               kernels::GateUpBackwardArgs<T>{.dy = set.dy->tensor<T>(),
                                              .down = set.down->tensor<T>(),
                                              .gate = half<T>(set.values, 0),
                                              .up = half<T>(set.values, 1),
                                              .dgate = half<T>(set.gradients, 0),
                                              .dup = half<T>(set.gradients, 1),
                                              .y = set.y->tensor<T>(),
                                              .precision = dot_precision(tf32_)});
    });
  }

  void add_library() {
    const auto algorithms = product_algorithms(device(), product_);
    for (size_t i = 0; i < algorithms.size(); ++i)
      add_rival({(on_cuda() ? fmt::format("cublasLt {}", i) : product_library(device())) +
                     " + silu_up_backward",
                 [this, i](Stream& s, int turn) {
                   const Set& set = data_[turn % data_.size()];
                   multiply(s, product_, set.dy->data(), set.down->data(), set.y->data(), int(i));
                   activate(s, set);
                 }});
  }

  // y holds the product, and is overwritten.
  void activate(Stream& stream, const Set& set) const {
    with_float(dtype(), [&](auto t) {
      using T = decltype(t);
      launch(stream, kernels::SiluUpBackwardArgs<T>{.gate = half<T>(set.values, 0),
                                                    .up = half<T>(set.values, 1),
                                                    .dy = set.y->tensor<T>(),
                                                    .dgate = half<T>(set.gradients, 0),
                                                    .dup = half<T>(set.gradients, 1),
                                                    .y = set.y->tensor<T>()});
    });
  }

  Accuracy check_results() const override {
    Accuracy accuracy = check_gradients();
    accuracy.include(check_activation());
    return accuracy;
  }
  Accuracy check_gradients() const {
    const Set& set = data_[0];
    const int64_t d = product_.k, f = product_.n;
    const ErrorBound bound{.length = d + 64,
                           .inner = product_roundoff(dtype(), tf32_) + roundoff(dtype())};
    return check_output(*set.gradients, bound, 2.0 * d, [&](int64_t row, auto cols, auto want) {
      const std::vector<double> dy = set.dy->held(row * d, d);
      for (size_t i = 0; i < cols.size(); ++i) {
        const int64_t col = cols[i] % f;
        const std::vector<double> down = set.down->held(col, d, f);
        double dact = 0, aa = 0, bb = 0;
        for (int64_t q = 0; q < d; ++q)
          dact += dy[q] * down[q], aa += dy[q] * dy[q], bb += down[q] * down[q];
        const double gate = set.values->held(row * 2 * f + col);
        const double up = set.values->held(row * 2 * f + f + col);
        const double s = 1 / (1 + std::exp(-gate)), norm = std::sqrt(aa * bb);
        if (cols[i] < f)
          want[i] = {dact * up * s * (1 + gate * (1 - s)), 1.1 * std::abs(up) * norm};
        else
          want[i] = {dact * gate * s, std::abs(gate * s) * norm};
      }
    });
  }
  Accuracy check_activation() const {
    const Set& set = data_[0];
    const int64_t f = product_.n;
    return check_output(*set.y, {.length = 64}, 10, [&](int64_t row, auto cols, auto want) {
      for (size_t i = 0; i < cols.size(); ++i) {
        const double gate = set.values->held(row * 2 * f + cols[i]);
        const double up = set.values->held(row * 2 * f + f + cols[i]);
        want[i] = {gate / (1 + std::exp(-gate)) * up, 0};
      }
    });
  }

  const bool tf32_;
  Product product_;
  std::vector<Set> data_;
};

}  // namespace

std::vector<ProblemSpec> gate_up_backward_problems() {
  return {{"gate_up_backward",
           "dy down and the gradients of silu(gate) * up in one kernel: SwiGLU's middle, backward",
           {{"m", "rows of c; of gate_up: rows of x", 512, 8192},
            {"ffn", "rows of gate and up each", 512, 4096},
            {"dim", "columns of x", 256, 1024},
            tf32_parameter()},
           {"gate_up_backward"},
           make<GateUpBackward>}};
}

}  // namespace cria
