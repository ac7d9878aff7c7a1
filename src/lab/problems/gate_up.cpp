// The first half of SwiGLU in one kernel, against the library's product followed by an activation.
#include "kernels/gate_up.h"

#include <cmath>

#include "base/format.h"
#include "kernels/silu.h"
#include "lab/problems/problems.h"

namespace cria {
namespace {

class GateUp final : public Problem {
 public:
  explicit GateUp(const ProblemRequest& request)
      : Problem(request), tf32_(request["tf32"] != 0), keep_(request["keep"] != 0) {
    const int m = request["m"], d = request["dim"], f = request["ffn"];
    request.product({"ffn"}, 2);
    const Extent both(2, f);
    plan_sets((double(m) * d + 2.0 * f * d + (keep_ ? 3.0 : 1.0) * m * f) * size_of(dtype()));
    const Operand* scratch = keep_ ? nullptr : &scratch_of(dtype(), 1, m, both);
    for (int set = 0; set < sets(); ++set)
      data_.push_back({&input(1, m, d), &input(1, both, d, 1 / std::sqrt(float(d))),
                       keep_ ? &output(1, m, both) : scratch, &output(1, m, f)});
    for (const Set& set : data_) add_kernel(set);
    if (!keep_) add_library();  // which has no derivatives
  }

  Ceiling ceiling() const override { return compute_ceiling(device(), dtype(), tf32_); }

 private:
  struct Set {
    const Operand *x, *w;      // w: gate over up
    const Operand *pairs, *y;  // pairs: y's derivatives side by side, or the library's product
  };

  void add_kernel(const Set& set) {
    with_float(dtype(), [&](auto t) {
      using T = decltype(t);
      kernels::GateUpArgs<T> args{.x = set.x->tensor<T>(),
                                  .gate = set.w->part<T>(0),
                                  .up = set.w->part<T>(1),
                                  .y = set.y->tensor<T>(),
                                  .precision = dot_precision(tf32_)};
      if (keep_) args.by_gate = set.pairs->part<T>(0), args.by_up = set.pairs->part<T>(1);
      add_call("gate_up", args);
    });
  }

  void add_library() {
    // Both projections in one product: gate's rows, then up's.
    const Set& first = data_[0];
    const Product both = product_of({.trans_b = true, .precision = library_precision(tf32_)},
                                    *first.x, *first.w, *first.pairs);
    const auto algorithms = product_algorithms(device(), both);
    for (size_t i = 0; i < algorithms.size(); ++i)
      add_rival(
          {(on_cuda() ? fmt::format("cublasLt {}", i) : product_library(device())) + " + silu_up",
           [this, both, i](Stream& s, int turn) {
             const Set& set = data_[turn % data_.size()];
             multiply(s, both, set.x->data(), set.w->data(), set.pairs->data(), int(i));
             activate(s, set);
           }});
  }

  void activate(Stream& stream, const Set& set) const {
    with_float(dtype(), [&](auto t) {
      using T = decltype(t);
      launch(stream, kernels::SiluUpForwardArgs<T>{set.pairs->part<T>(0), set.pairs->part<T>(1),
                                                   set.y->tensor<T>()});
    });
  }

  Accuracy check_results() const override {
    Accuracy accuracy = check_activation();
    if (keep_) accuracy.include(check_derivatives());
    return accuracy;
  }

  // x gateᵀ and x upᵀ of an element, and what their errors are relative to.
  struct Products {
    double gate = 0, up = 0, gate_norm = 0, up_norm = 0;
    double s() const { return 1 / (1 + std::exp(-gate)); }
  };
  // Of row `row` of x and column `col` of y.
  Products products(int64_t row, int64_t col) const {
    const Set& set = data_[0];
    const int64_t d = set.x->cols(), f = set.y->cols();
    const std::vector<double> x = set.x->held(row * d, d);
    const std::vector<double> g = set.w->held(col * d, d), u = set.w->held((f + col) * d, d);
    Products p;
    double xx = 0, gg = 0, uu = 0;
    for (int64_t q = 0; q < d; ++q) {
      p.gate += x[q] * g[q], p.up += x[q] * u[q];
      xx += x[q] * x[q], gg += g[q] * g[q], uu += u[q] * u[q];
    }
    p.gate_norm = std::sqrt(xx * gg), p.up_norm = std::sqrt(xx * uu);
    return p;
  }
  // The activation and the rounding of both factors come on top of the product's error.
  ErrorBound bound() const {
    return {.length = data_[0].x->cols(),
            .inner = product_roundoff(dtype(), tf32_) + roundoff(dtype())};
  }
  Accuracy check_activation() const {
    return check_output(
        *data_[0].y, bound(), 4.0 * data_[0].x->cols(), [&](int64_t row, auto cols, auto want) {
          for (size_t i = 0; i < cols.size(); ++i) {
            const Products p = products(row, cols[i]);
            const double silu = p.gate * p.s();
            // |silu'| <= 1.1
            want[i] = {silu * p.up,
                       1.1 * std::abs(p.up) * p.gate_norm + std::abs(silu) * p.up_norm};
          }
        });
  }
  Accuracy check_derivatives() const {
    const int64_t f = data_[0].y->cols();
    return check_output(*data_[0].pairs, bound(), 4.0 * data_[0].x->cols(),
                        [&](int64_t row, auto cols, auto want) {
                          for (size_t i = 0; i < cols.size(); ++i) {
                            const Products p = products(row, cols[i] % f);
                            const double s = p.s();
                            // |silu''| <= 0.5
                            if (cols[i] < f)
                              want[i] = {p.up * s * (1 + p.gate * (1 - s)),
                                         0.5 * std::abs(p.up) * p.gate_norm + 1.1 * p.up_norm};
                            else
                              want[i] = {p.gate * s, 1.1 * p.gate_norm};
                          }
                        });
  }

  const bool tf32_, keep_;
  std::vector<Set> data_;
};

}  // namespace

std::vector<ProblemSpec> gate_up_problems() {
  return {
      {"gate_up",
       "silu(x gate') * (x up') in one kernel: the first half of SwiGLU",
       {{"m", "rows of c; of gate_up: rows of x", 512, 32768},
        {"ffn", "rows of gate and up each", 512, 5632},
        {"dim", "columns of x", 256, 2048},
        {"keep", "1: write y's derivatives by both products, too, as training does", 0, 0, 0, 1},
        tf32_parameter()},
       {"gate_up"},
       make<GateUp>}};
}

}  // namespace cria
