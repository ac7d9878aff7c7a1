// Heads in another order, and the mask over their scores: bound by memory.
#include "kernels/pointwise.h"
#include "lab/problems/problems.h"

namespace cria {
namespace {

// [B, T, H, K] to [B, H, T, K].
class CopyHeads final : public Problem {
 public:
  explicit CopyHeads(const ProblemRequest& request)
      : Problem(request),
        rows_(request["seq"]),
        heads_(request["heads"]),
        head_dim_(request["head-dim"]) {
    const int batch = request["batch"], matrices = request.product({"batch", "heads"});
    const double width = request.product({"heads", "head-dim"});
    plan_sets(2.0 * batch * rows_ * width * size_of(dtype()));
    for (int set = 0; set < sets(); ++set) {
      const Operand& x = input(batch, rows_, {heads_, head_dim_});
      const Operand& y = output(matrices, rows_, head_dim_);
      if (set == 0) x_ = &x, y_ = &y;
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call("copy_heads", kernels::CopyHeadsArgs<T>{x.heads<T>(), y.tensor<T>()});
      });
    }
  }

  Ceiling ceiling() const override { return copy_ceiling(device(), cost().bytes()); }

 private:
  Accuracy check_results() const override {
    return check_output(*y_, {}, 1, [&](int64_t row, auto cols, auto want) {
      const int64_t head = row / rows_, t = row % rows_;
      const int64_t from = head / heads_ * rows_ + t;  // row of x
      for (size_t i = 0; i < cols.size(); ++i)
        want[i].value = x_->held((from * heads_ + head % heads_) * int64_t{head_dim_} + cols[i]);
    });
  }

  const int rows_, heads_, head_dim_;
  const Operand *x_ = nullptr, *y_ = nullptr;
};

class CausalMask final : public Problem {
 public:
  explicit CausalMask(const ProblemRequest& request) : Problem(request) {
    const int matrices = request.product({"batch", "heads"}), n = request["seq"];
    plan_sets(double(matrices) * n * n * size_of(dtype()));
    given_ = &input(matrices, n, n);
    for (int set = 0; set < sets(); ++set) {
      scores_.push_back(&scratch_of(dtype(), matrices, n, n));
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call("causal_mask", kernels::CausalMaskArgs<T>{scores_.back()->tensor<T>()});
      });
    }
  }

  Ceiling ceiling() const override { return copy_ceiling(device(), cost().bytes()); }

 private:
  void prepare(Stream& stream) override {
    for (const Operand* scores : scores_) scores->copy_from(stream, *given_);
  }
  Accuracy check_results() const override {
    const int64_t n = given_->cols();
    return check_output(*scores_[0], {}, 1, [&](int64_t row, auto cols, auto want) {
      for (size_t i = 0; i < cols.size(); ++i)
        want[i].value = cols[i] > row % n ? lowest() : given_->held(row * n + cols[i]);
    });
  }
  double lowest() const {
    return with_float(dtype(), [](auto t) { return kernels::CausalMaskArgs<decltype(t)>::lowest; });
  }

  const Operand* given_ = nullptr;
  std::vector<const Operand*> scores_;
};

}  // namespace

std::vector<ProblemSpec> head_problems() {
  const Parameter batch{"batch", "sequences", 1, 4}, heads{"heads", "query heads", 4, 16},
      length{"seq", "positions of a sequence", 1024, 2048};
  return {{"copy_heads",
           "heads of rows laid one after the other",
           {batch,
            heads,
            length,
            {"head-dim", "columns of a head; of attention: at most 256", 64, 128, 1, 256}},
           {"copy_heads"},
           make<CopyHeads>},
          {"causal_mask",
           "scores of later positions made the lowest there are",
           {batch, heads, length},
           {"causal_mask"},
           make<CausalMask>}};
}

}  // namespace cria
