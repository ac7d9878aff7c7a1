// Products of a few rows: bound by reading the matrix.
#include "kernels/gemv.h"

#include <cmath>

#include "lab/problems/problems.h"

namespace cria {
namespace {

class Gemv final : public Problem {
 public:
  explicit Gemv(const ProblemRequest& request) : Problem(request) {
    const int m = request["m"], n = request["n"], k = request["k"];
    plan_sets(double(n) * k * size_of(dtype()));
    for (int set = 0; set < sets(); ++set) {
      data_.push_back({&input(1, m, k), &input(1, n, k), &output(1, m, n)});
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        const Set& s = data_.back();
        add_call("gemv",
                 kernels::GemvArgs<T>{s.x->tensor<T>(), s.w->tensor<T>(), s.y->tensor<T>()});
      });
    }
    const Set& first = data_[0];
    const Product product = product_of({.trans_b = true}, *first.x, *first.w, *first.y);
    add_rival({"product", [this, product](Stream& stream, int turn) {
                 const Set& s = data_[turn % data_.size()];
                 multiply(stream, product, s.x->data(), s.w->data(), s.y->data());
               }});
  }

  Ceiling ceiling() const override { return read_ceiling(device(), cost().bytes()); }

 private:
  struct Set {
    const Operand *x, *w, *y;
  };

  Accuracy check_results() const override {
    const Set& s = data_[0];
    const int64_t k = s.x->cols();
    return check_output(*s.y, {.length = k}, 2.0 * k, [&](int64_t row, auto cols, auto want) {
      const std::vector<double> x = s.x->held(row * k, k);
      for (size_t i = 0; i < cols.size(); ++i) {
        const std::vector<double> w = s.w->held(cols[i] * k, k);
        want[i] = {};
        for (int64_t c = 0; c < k; ++c)
          want[i].value += x[c] * w[c], want[i].norm += std::abs(x[c] * w[c]);
      }
    });
  }

  std::vector<Set> data_;
};

}  // namespace

std::vector<ProblemSpec> gemv_problems() {
  return {{"gemv",
           "a few rows times a matrix, as in decoding",
           {{"m", "rows of c; of gate_up: rows of x", 1, 1, 1, 8},
            {"n", "elements; of gemm: columns of c", 5632, 5632},
            {"k", "terms in each element of c", 2048, 2048}},
           {"gemv"},
           make<Gemv>}};
}

}  // namespace cria
