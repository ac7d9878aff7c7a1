// The backward pass of SwiGLU's middle in one kernel, against the library's product followed by two
// multiplications.
#include "kernels/gate_up_backward.h"

#include <cmath>

#include "base/format.h"
#include "kernels/pointwise.h"
#include "lab/problems/problems.h"

namespace cria {
namespace {

class GateUpBackward final : public Problem {
 public:
  explicit GateUpBackward(const ProblemRequest& request)
      : Problem(request), tf32_(request["tf32"] != 0) {
    const int m = request["m"], d = request["dim"], f = request["ffn"];
    request.product({"ffn"}, 2);
    const Extent both(2, f);
    plan_sets((double(m) * d + double(d) * f + 4.0 * m * f) * size_of(dtype()));
    dact_ = &scratch_of(dtype(), 1, m, f);
    for (int set = 0; set < sets(); ++set)
      data_.push_back({&input(1, m, d), &input(1, d, f, 1 / std::sqrt(float(d))),
                       &input(1, m, both), &output(1, m, both)});
    for (const Set& set : data_) add_kernel(set);
    add_library();
  }

  Ceiling ceiling() const override { return compute_ceiling(device(), dtype(), tf32_); }

 private:
  struct Set {
    const Operand *dy, *down;
    const Operand *derivatives, *gradients;  // by gate beside by up
  };

  void add_kernel(const Set& set) {
    with_float(dtype(), [&](auto t) {
      using T = decltype(t);
      add_call("gate_up_backward",
               kernels::GateUpBackwardArgs<T>{.dy = set.dy->tensor<T>(),
                                              .down = set.down->tensor<T>(),
                                              .by_gate = set.derivatives->part<T>(0),
                                              .by_up = set.derivatives->part<T>(1),
                                              .dgate = set.gradients->part<T>(0),
                                              .dup = set.gradients->part<T>(1),
                                              .precision = dot_precision(tf32_)});
    });
  }

  void add_library() {
    const Product product =
        product_of({.precision = library_precision(tf32_)}, *data_[0].dy, *data_[0].down, *dact_);
    const auto algorithms = product_algorithms(device(), product);
    for (size_t i = 0; i < algorithms.size(); ++i)
      add_rival({(on_cuda() ? fmt::format("cublasLt {}", i) : product_library(device())) +
                     " + 2 multiply",
                 [this, product, i](Stream& s, int turn) {
                   const Set& set = data_[turn % data_.size()];
                   multiply(s, product, set.dy->data(), set.down->data(), dact_->data(), int(i));
                   multiply_halves(s, set);
                 }});
  }

  void multiply_halves(Stream& stream, const Set& set) const {
    with_float(dtype(), [&](auto t) {
      using T = decltype(t);
      for (int i = 0; i < 2; ++i)
        launch(stream, kernels::MultiplyArgs<T>{.x = dact_->tensor<T>(),
                                                .y = set.derivatives->part<T>(i),
                                                .z = set.gradients->part<T>(i)});
    });
  }

  Accuracy check_results() const override {
    const Set& set = data_[0];
    const int64_t d = set.dy->cols(), f = set.down->cols();
    const ErrorBound bound{.length = d,
                           .inner = product_roundoff(dtype(), tf32_) + roundoff(dtype())};
    return check_output(*set.gradients, bound, 2.0 * double(d),
                        [&](int64_t row, auto cols, auto want) {
                          const std::vector<double> dy = set.dy->held(row * d, d);
                          for (size_t i = 0; i < cols.size(); ++i) {
                            const std::vector<double> down = set.down->held(cols[i] % f, d, f);
                            double dact = 0, aa = 0, bb = 0;
                            for (int64_t q = 0; q < d; ++q)
                              dact += dy[q] * down[q], aa += dy[q] * dy[q], bb += down[q] * down[q];
                            const double by = set.derivatives->held(row * 2 * f + cols[i]);
                            want[i] = {dact * by, std::abs(by) * std::sqrt(aa * bb)};
                          }
                        });
  }

  const bool tf32_;
  const Operand* dact_ = nullptr;  // the library's
  std::vector<Set> data_;
};

}  // namespace

std::vector<ProblemSpec> gate_up_backward_problems() {
  return {{"gate_up_backward",
           "dy down, times kept derivatives, in one kernel: SwiGLU's middle, backward",
           {{"m", "rows of c; of gate_up: rows of x", 512, 8192},
            {"ffn", "rows of gate and up each", 512, 4096},
            {"dim", "columns of x", 256, 1024},
            tf32_parameter()},
           {"gate_up_backward"},
           make<GateUpBackward>}};
}

}  // namespace cria
