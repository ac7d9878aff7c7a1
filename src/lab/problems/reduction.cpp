// Sums: bound by reading.
#include "kernels/reduction.h"

#include <cmath>

#include "kernels/shares.h"
#include "lab/problems/problems.h"

namespace cria {
namespace {

// Of a vector, or of its squares.
template <kernels::Term Of>
class Sum final : public Problem {
 public:
  explicit Sum(const ProblemRequest& request) : Problem(request) {
    const int n = request["n"];
    const int partials = shares_of(request, kernels::sum_shares(device()));
    plan_sets(double(n) * size_of(dtype()));
    for (int set = 0; set < sets(); ++set) {
      const Operand& x = input(1, 1, n);
      const Operand& shares = scratch_of(DType::f32, 1, 1, partials);
      const Operand& out = output_of(DType::f32, 1, 1, 1);
      signals_.push_back(&scratch_of(DType::i32, 1, 1, 1));
      if (set == 0) x_ = &x, out_ = &out;
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call(
            Of == kernels::Term::kSquare ? "sum_squares" : "sum",
            kernels::SumOfArgs<T, Of>{x.tensor<T>(), shares.tensor<float>(),
                                      signals_.back()->tensor<int32_t>(), out.tensor<float>()});
      });
    }
  }

  Ceiling ceiling() const override { return read_ceiling(device(), cost().bytes()); }

 private:
  void prepare(Stream& stream) override {
    for (const Operand* s : signals_) s->clear(stream);
  }

  Accuracy check_results() const override {
    const Exact want = Of == kernels::Term::kSquare ? x_->sum_squares() : x_->sum();
    return check_output(*out_, {.length = x_->size()}, 1,
                        [&](int64_t, auto, auto out) { out[0] = want; });
  }

  const Operand *x_ = nullptr, *out_ = nullptr;
  std::vector<const Operand*> signals_;
};

class ColumnSum final : public Problem {
 public:
  explicit ColumnSum(const ProblemRequest& request) : Problem(request) {
    const int rows = request["rows"], cols = request["cols"];
    plan_sets(4.0 * rows * cols);
    for (int set = 0; set < sets(); ++set) {
      const Operand& x = input_of(DType::f32, 1, rows, cols);
      const Operand& y = output(1, 1, cols);
      if (set == 0) x_ = &x, y_ = &y;
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call("column_sum", kernels::ColumnSumArgs<T>{x.tensor<float>(), y.tensor<T>()});
      });
    }
  }

  Ceiling ceiling() const override { return read_ceiling(device(), cost().bytes()); }

 private:
  Accuracy check_results() const override {
    const int64_t rows = x_->rows(), n = x_->cols();
    return check_output(*y_, {.length = rows}, double(rows), [&](int64_t, auto cols, auto want) {
      for (size_t i = 0; i < cols.size(); ++i)
        for (double v : x_->held(cols[i], rows, n)) want[i].value += v, want[i].norm += std::abs(v);
    });
  }

  const Operand *x_ = nullptr, *y_ = nullptr;
};

}  // namespace

std::vector<ProblemSpec> reduction_problems() {
  return {
      {"reduction",
       "the sum of a vector",
       {{"n", "elements; of gemm: columns of c", 1 << 24, 1 << 29}, shares_parameter()},
       {"sum"},
       make<Sum<kernels::Term::kItself>>},
      {"sum_squares",
       "the sum of a vector's squares",
       {{"n", "elements; of gemm: columns of c", 1 << 24, 1 << 29}, shares_parameter()},
       {"sum_squares"},
       make<Sum<kernels::Term::kSquare>>},
      {"column_sum",
       "the sum of each column of a matrix, f32 in",
       {{"rows", "rows of the matrix", 512, 1056}, {"cols", "columns of the matrix", 4096, 4096}},
       {"column_sum"},
       make<ColumnSum>}};
}

}  // namespace cria
