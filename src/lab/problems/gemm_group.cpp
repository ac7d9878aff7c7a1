// The gradients of a block's weights in one launch, against the library's products one by one.
#include "kernels/gemm_group.h"

#include <array>
#include <cmath>
#include <utility>

#include "lab/problems/problems.h"

namespace cria {
namespace {

class GemmGroup final : public Problem {
 public:
  explicit GemmGroup(const ProblemRequest& request)
      : Problem(request), tf32_(request["tf32"] != 0), m_(request["m"]) {
    const int dim = request["dim"], ffn = request["ffn"];
    // down, gate and up, the attention's output, and q, k and v with half as many heads for k and
    // v.
    request.product({"ffn"}, 2);
    const int qkv = request.product({"dim"}, 2);
    const std::pair<Extent, int> shapes[kParts] = {
        {dim, ffn}, {{2, ffn}, dim}, {dim, dim}, {qkv, dim}};
    double bytes = 0;
    for (const auto& [rows, cols] : shapes)
      bytes += (double(m_) * (rows.size() + cols) + double(rows.size()) * cols) * size_of(dtype());
    plan_sets(bytes);
    for (int set = 0; set < sets(); ++set) {
      Set& parts = data_.emplace_back();
      for (int i = 0; i < kParts; ++i)
        parts[i] = {&input(1, m_, shapes[i].first), &input(1, m_, shapes[i].second),
                    &output(1, shapes[i].first, shapes[i].second)};
      add_kernel(parts);
    }
    add_rival({"library products", [this](Stream& s, int turn) {
                 for (const Part& p : data_[turn % data_.size()])
                   multiply(s, gradient(p), p.dy->data(), p.x->data(), p.dw->data());
               }});
  }

  Ceiling ceiling() const override { return compute_ceiling(device(), dtype(), tf32_); }

 private:
  static constexpr int kParts = 4;
  struct Part {
    const Operand *dy, *x, *dw;
  };
  using Set = std::array<Part, kParts>;

  void add_kernel(const Set& set) {
    with_float(dtype(), [&](auto t) {
      using T = decltype(t);
      kernels::GemmGroupArgs<T> args{.parts = {}, .precision = dot_precision(tf32_)};
      for (int i = 0; i < kParts; ++i)
        args.parts[i] = {set[i].dy->tensor<T>(), set[i].x->tensor<T>(), set[i].dw->tensor<T>()};
      add_call("gemm_group", args);
    });
  }

  static int rows_of(const Part& p) { return int(p.dw->rows()); }
  static int cols_of(const Part& p) { return p.dw->cols(); }

  Product gradient(const Part& p) const {
    return product_of({.trans_a = true, .precision = library_precision(tf32_)}, *p.dy, *p.x, *p.dw);
  }

  Accuracy check_results() const override {
    Accuracy accuracy;
    for (const Part& p : data_[0]) accuracy.include(check_part(p));
    return accuracy;
  }
  Accuracy check_part(const Part& p) const {
    const ErrorBound bound{.length = m_, .inner = product_roundoff(dtype(), tf32_)};
    return check_output(*p.dw, bound, 2.0 * m_, [&](int64_t row, auto cols, auto want) {
      const std::vector<double> dy = p.dy->held(row, m_, rows_of(p));
      for (size_t i = 0; i < cols.size(); ++i) {
        const std::vector<double> x = p.x->held(cols[i], m_, cols_of(p));
        double sum = 0, dd = 0, xx = 0;
        for (int q = 0; q < m_; ++q) sum += dy[q] * x[q], dd += dy[q] * dy[q], xx += x[q] * x[q];
        want[i] = {sum, std::sqrt(dd * xx)};
      }
    });
  }

  const bool tf32_;
  const int m_;
  std::vector<Set> data_;
};

}  // namespace

std::vector<ProblemSpec> gemm_group_problems() {
  return {{"gemm_group",
           "the gradients of all weights of a block, four products in one launch",
           {{"m", "rows of c; of gate_up: rows of x", 512, 8192},
            {"ffn", "rows of gate and up each", 512, 4096},
            {"dim", "columns of x", 256, 1024},
            tf32_parameter()},
           {"gemm_group"},
           make<GemmGroup>}};
}

}  // namespace cria
