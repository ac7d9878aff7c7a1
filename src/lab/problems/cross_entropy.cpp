// Cross-entropy of logits, with its gradient in their place: bound by memory.
#include "kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "lab/problems/problems.h"

namespace cria {
namespace {

class CrossEntropy final : public Problem {
 public:
  explicit CrossEntropy(const ProblemRequest& request) : Problem(request) {
    const int rows = request["rows"], vocabulary = request["vocab"];
    plan_sets(double(rows) * vocabulary * size_of(dtype()));
    given_ = &input(1, rows, vocabulary);
    // Normal numbers around the middle of the vocabulary.
    targets_ = &input_of(DType::i32, 1, 1, rows, vocabulary / 12.f, vocabulary / 2.f);
    for (int set = 0; set < sets(); ++set) {
      logits_.push_back(&scratch_of(dtype(), 1, rows, vocabulary));
      const Operand& loss = output_of(DType::f32, 1, rows, 1);
      if (set == 0) loss_ = &loss;
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call("cross_entropy",
                 kernels::CrossEntropyArgs<T>{logits_.back()->tensor<T>(),
                                              targets_->tensor<int32_t>(), loss.tensor<float>()});
      });
    }
  }

  Ceiling ceiling() const override { return copy_ceiling(device(), cost().bytes()); }

 private:
  void prepare(Stream& stream) override {
    for (const Operand* logits : logits_) logits->copy_from(stream, *given_);
  }

  struct Row {
    std::vector<double> x;
    int64_t target;
    double top, total = 0;
  };
  Row row_at(int64_t row) const {
    const int64_t n = given_->cols();
    Row out{given_->held(row * n, n), static_cast<int64_t>(targets_->held(row)), 0};
    out.top = *std::max_element(out.x.begin(), out.x.end());
    for (double v : out.x) out.total += std::exp(v - out.top);
    return out;
  }

  Accuracy check_results() const override {
    const ErrorBound bound{.length = given_->cols()};
    Accuracy all =
        check_output(*loss_, bound, double(given_->cols()), [&](int64_t row, auto, auto want) {
          const Row r = row_at(row);
          const double loss = r.top + std::log(r.total) - r.x[r.target];
          want[0] = {loss, std::abs(loss) + std::abs(r.top)};
        });
    all.include(check_output(*logits_[0], bound, 8, [&](int64_t row, auto cols, auto want) {
      const Row r = row_at(row);
      for (size_t i = 0; i < cols.size(); ++i) {
        const double share = std::exp(r.x[cols[i]] - r.top) / r.total;
        const double aimed = cols[i] == r.target ? 1 : 0;
        want[i] = {share - aimed, share + aimed};
      }
    }));
    return all;
  }

  const Operand *given_ = nullptr, *targets_ = nullptr, *loss_ = nullptr;
  std::vector<const Operand*> logits_;
};

}  // namespace

std::vector<ProblemSpec> cross_entropy_problems() {
  return {{"cross_entropy",
           "cross-entropy of rows of logits, and its gradient in their place",
           {{"rows", "rows of the matrix", 512, 8192}, vocab_parameter()},
           {"cross_entropy"},
           make<CrossEntropy>}};
}

}  // namespace cria
