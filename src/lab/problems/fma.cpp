// Fused multiply-adds on values in registers: the ceiling of all arithmetic, itself a kernel.
#include "kernels/fma_probe.h"
#include "lab/problems/problems.h"

namespace cria {
namespace {

class Fma final : public Problem {
 public:
  explicit Fma(const ProblemRequest& request) : Problem(request) {
    const int rows = request["rows"], cols = request["cols"];
    plan_sets(1e12);
    y_ = &output(1, rows, cols);
    args_ = {y_->tensor<float>(), request["rounds"]};
    add_call("fma", args_);
  }

  Ceiling ceiling() const override { return fma_ceiling(device()); }

 private:
  Accuracy check_results() const override {
    const int64_t applications = int64_t{args_.rounds} * args_.chain;
    return check_output(*y_, {.length = 4}, 1, [&](int64_t row, auto cols, auto want) {
      double x = double(row);
      for (int64_t i = 0; i < std::min<int64_t>(applications, 200); ++i) x = args_.a * x + args_.b;
      for (size_t i = 0; i < cols.size(); ++i) want[i].value = x;
    });
  }

  const Operand* y_;
  kernels::FmaProbeArgs<float> args_;
};

}  // namespace

std::vector<ProblemSpec> fma_problems() {
  return {{"fma",
           "chains of multiply-adds in registers, f32 only: the arithmetic ceiling",
           {{"rows", "rows of the matrix", 64, 8192},
            {"cols", "columns of the matrix", 2048, 2048},
            {"rounds", "of 16 multiply-adds", 64, 64}},
           {"fma_probe"},
           make<Fma>}};
}

}  // namespace cria
