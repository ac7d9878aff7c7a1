// Rotary position embedding: bound by memory.
#include "kernels/rope.h"

#include <cmath>

#include "base/format.h"
#include "lab/problems/angles.h"
#include "lab/problems/problems.h"

namespace cria {
namespace {

template <int Sign>
class Rope final : public Problem {
 public:
  explicit Rope(const ProblemRequest& request)
      : Problem(request),
        heads_(request["heads"]),
        length_(request["seq"]),
        head_dim_(request["head-dim"]) {
    if (head_dim_ % 2 != 0)
      fail_f("--head-dim {} is odd: rope turns pairs, use an even width", head_dim_);
    const int batch = request["batch"];
    const double width = request.product({"heads", "head-dim"});
    request.product({"batch", "seq", "heads"}, 2);
    plan_sets(2.0 * batch * length_ * width * size_of(dtype()));
    angles_.emplace(device(), length_, head_dim_, packed());
    for (int set = 0; set < sets(); ++set) {
      const Operand& x = input(batch, length_, {heads_, head_dim_});
      const Operand& y = output(batch, length_, {heads_, head_dim_});
      if (set == 0) x_ = &x, y_ = &y;
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call(
            Sign > 0 ? "rope" : "rope_backward",
            kernels::RopeArgs<T, Sign>{x.heads<T>(), angles_->cos(), angles_->sin(), y.heads<T>()});
      });
    }
  }

  Ceiling ceiling() const override { return copy_ceiling(device(), cost().bytes()); }

 private:
  Accuracy check_results() const override {
    const int half = head_dim_ / 2;
    return check_output(*y_, {.length = 4}, 20, [&](int64_t row, auto cols, auto want) {
      for (size_t i = 0; i < cols.size(); ++i) {
        const int64_t place = cols[i] % head_dim_, pair = place % half;
        const double angle = (*angles_)(row % length_, pair);
        const int64_t low = row * x_->cols() + cols[i] - place + pair;
        const double a = x_->held(low), b = x_->held(low + half);
        const double c = std::cos(angle), s = Sign * std::sin(angle);
        want[i] = {place < half ? a * c - b * s : b * c + a * s, std::abs(a) + std::abs(b)};
      }
    });
  }

  const int heads_, length_, head_dim_;
  std::optional<Angles> angles_;
  const Operand *x_ = nullptr, *y_ = nullptr;
};

}  // namespace

std::vector<ProblemSpec> rope_problems() {
  const std::vector<Parameter> sizes = {
      {"batch", "sequences", 1, 16},
      {"heads", "query heads", 16, 32},
      {"seq", "positions of a sequence", 1024, 2048},
      {"head-dim", "columns of a head; of attention: at most 256", 64, 128, 2, 1024}};
  return {{"rope", "rotary position embedding", sizes, {"rope_forward"}, make<Rope<1>>},
          {"rope_backward",
           "rotary position embedding, backward",
           sizes,
           {"rope_backward"},
           make<Rope<-1>>}};
}

}  // namespace cria
