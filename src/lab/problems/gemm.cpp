// Matrix products against the library's own.
#include "kernels/gemm.h"

#include <cmath>

#include "base/format.h"
#include "lab/problems/problems.h"

namespace cria {
namespace {

class Gemm final : public Problem {
 public:
  explicit Gemm(const ProblemRequest& request)
      : Problem(request),
        tf32_(request["tf32"] != 0),
        with_residual_(request["residual"] != 0),
        trans_a_(request["trans-a"] != 0),
        trans_b_(request["trans-b"] != 0) {
    const int m = request["m"], n = request["n"], k = request["k"];
    plan_sets((double(m) * k + double(k) * n + double(m) * n) * size_of(dtype()));
    for (int set = 0; set < sets(); ++set) {
      const Operand& a = trans_a_ ? input(1, k, m) : input(1, m, k);
      const Operand& b = trans_b_ ? input(1, n, k) : input(1, k, n);
      const Operand* residual = with_residual_ ? &input(1, m, n) : nullptr;
      const Operand& c = output(1, m, n);
      data_.push_back({&a, &b, residual, &c});
      add_kernel(data_.back());
    }
    if (!with_residual_) add_library();
  }

  Ceiling ceiling() const override { return compute_ceiling(device(), dtype(), tf32_); }

 private:
  struct Set {
    const Operand *a, *b, *residual, *c;
  };

  void add_kernel(const Set& set) {
    with_float(dtype(), [&](auto t) {
      using T = decltype(t);
      auto add = [&](auto args) {
        args.a = set.a->tensor<T>(), args.b = set.b->tensor<T>(), args.c = set.c->tensor<T>();
        if (set.residual) args.residual = set.residual->tensor<T>();
        args.precision = dot_precision(tf32_);
        add_call("gemm", args);
      };
      using kernels::GemmArgs;
      if (trans_a_)
        trans_b_ ? add(GemmArgs<T, true, true>{}) : add(GemmArgs<T, true, false>{});
      else
        trans_b_ ? add(GemmArgs<T, false, true>{}) : add(GemmArgs<T, false, false>{});
    });
  }

  void add_library() {
    const Set& first = data_[0];
    const Product product = product_of(
        {.trans_a = trans_a_, .trans_b = trans_b_, .precision = library_precision(tf32_)}, *first.a,
        *first.b, *first.c);
    const auto algorithms = product_algorithms(device(), product);
    for (size_t i = 0; i < algorithms.size(); ++i)
      add_rival(
          {on_cuda() ? fmt::format("cublasLt {}: {}", i, algorithms[i]) : product_library(device()),
           [this, product, i](Stream& s, int turn) {
             const Set& set = data_[turn % data_.size()];
             multiply(s, product, set.a->data(), set.b->data(), set.c->data(), int(i));
           }});
  }

  int64_t terms() const { return request_["k"]; }
  // Row i of op(A), column j of op(B).
  std::vector<double> row_of_a(int64_t i) const {
    return trans_a_ ? data_[0].a->held(i, terms(), data_[0].a->cols())
                    : data_[0].a->held(i * terms(), terms());
  }
  std::vector<double> column_of_b(int64_t j) const {
    return trans_b_ ? data_[0].b->held(j * terms(), terms())
                    : data_[0].b->held(j, terms(), data_[0].b->cols());
  }

  Accuracy check_results() const override {
    const ErrorBound bound{.length = terms(), .inner = product_roundoff(dtype(), tf32_)};
    return check_output(*data_[0].c, bound, 2.0 * double(terms()),
                        [&](int64_t row, auto cols, auto want) {
                          const std::vector<double> a = row_of_a(row);
                          for (size_t i = 0; i < cols.size(); ++i) {
                            const std::vector<double> b = column_of_b(cols[i]);
                            double sum = 0, aa = 0, bb = 0;
                            for (size_t q = 0; q < a.size(); ++q)
                              sum += a[q] * b[q], aa += a[q] * a[q], bb += b[q] * b[q];
                            if (with_residual_)
                              sum += data_[0].residual->held(row * data_[0].c->cols() + cols[i]);
                            want[i] = {sum, std::sqrt(aa * bb)};
                          }
                        });
  }

  const bool tf32_, with_residual_, trans_a_, trans_b_;
  std::vector<Set> data_;
};

}  // namespace

std::vector<ProblemSpec> gemm_problems() {
  return {{"gemm",
           "matrix product c = op(a) op(b) on tensor cores, c is m x n, k terms each",
           {{"m", "rows of c; of gate_up: rows of x", 512, 8192},
            {"n", "elements; of gemm: columns of c", 512, 8192},
            {"k", "terms in each element of c", 512, 8192},
            {"trans-a", "1: a is stored k x m", 0, 0, 0, 1},
            {"trans-b", "1: b is stored n x k", 1, 1, 0, 1},
            {"residual", "1: add a matrix to the product", 0, 0, 0, 1},
            tf32_parameter()},
           {"gemm_nt", "gemm_nn", "gemm_tn", "gemm_tt"},
           make<Gemm>}};
}

}  // namespace cria
