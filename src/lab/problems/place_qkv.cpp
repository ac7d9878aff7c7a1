// A token's queries, keys and values to their places: bound by memory, if it were not so little.
#include "kernels/place_qkv.h"

#include <cmath>

#include "base/format.h"
#include "lab/problems/angles.h"
#include "lab/problems/problems.h"

namespace cria {
namespace {

// The cache is that of one position, the last that there are angles for.
class PlaceQkv final : public Problem {
 public:
  explicit PlaceQkv(const ProblemRequest& request)
      : Problem(request),
        heads_(request["heads"]),
        kv_heads_(request["kv-heads"] > 0 ? request["kv-heads"] : heads_),
        length_(request["seq"]),
        head_dim_(request["head-dim"]) {
    if (head_dim_ % 2 != 0)
      fail_f("--head-dim {} is odd: rope turns pairs, use an even width", head_dim_);
    for (const char* heads : {"heads", "kv-heads"}) request.product({heads, "head-dim"}, 3);
    request.product({"seq", "head-dim"});
    const int rows = heads_ + 2 * kv_heads_;
    plan_sets(2.0 * rows * head_dim_ * size_of(dtype()));
    angles_.emplace(device(), length_, head_dim_, packed());
    for (int set = 0; set < sets(); ++set) {
      const Operand& x = input(1, rows, head_dim_);
      const Operand& y = output(1, rows, head_dim_);
      const Operand& position = input_of(DType::i32, 1, 1, 1, 0);
      if (set == 0) x_ = &x, y_ = &y;
      with_float(dtype(), [&](auto t) { add_kernel<decltype(t)>(x, y, position); });
    }
  }

  Ceiling ceiling() const override { return copy_ceiling(device(), cost().bytes()); }

 private:
  template <class T>
  void add_kernel(const Operand& x, const Operand& y, const Operand& position) {
    const auto part = [&](const Operand& of, int first, int count) {
      return matrix_of(of.tensor<T>().row(first), count, head_dim_, of.layout().ld);
    };
    const auto cache = [&](int first) {
      const Tensor<T> heads = part(y, first, kv_heads_);
      return Tensor<T>{heads.data, heads.rows, 1, heads.cols, heads.ld, heads.ld};
    };
    const auto last = [&](Tensor<const float> table) {
      return matrix_of(table.row(length_ - 1), 1, table.cols, table.ld);
    };
    add_call("place_qkv", kernels::PlaceQkvArgs<T>{.q = part(x, 0, heads_),
                                                   .k = part(x, heads_, kv_heads_),
                                                   .v = part(x, heads_ + kv_heads_, kv_heads_),
                                                   .queries = part(y, 0, heads_),
                                                   .keys = cache(heads_),
                                                   .values = cache(heads_ + kv_heads_),
                                                   .cos = last(angles_->cos()),
                                                   .sin = last(angles_->sin()),
                                                   .position = position.tensor<int32_t>()});
  }

  Accuracy check_results() const override {
    const int half = head_dim_ / 2;
    return check_output(*y_, {.length = 4}, 20, [&](int64_t row, auto cols, auto want) {
      const bool turned = row < heads_ + kv_heads_;
      for (size_t i = 0; i < cols.size(); ++i) {
        const int64_t pair = cols[i] % half, low = row * head_dim_ + pair;
        const double angle = turned ? (*angles_)(length_ - 1, pair) : 0;
        const double a = x_->held(low), b = x_->held(low + half);
        const double c = std::cos(angle), s = std::sin(angle);
        want[i] = {cols[i] < half ? a * c - b * s : b * c + a * s, std::abs(a) + std::abs(b)};
      }
    });
  }

  const int heads_, kv_heads_, length_, head_dim_;
  std::optional<Angles> angles_;
  const Operand *x_ = nullptr, *y_ = nullptr;
};

}  // namespace

std::vector<ProblemSpec> place_qkv_problems() {
  return {{"place_qkv",
           "a token's queries and keys turned, keys and values into the cache",
           {{"heads", "query heads", 4, 32},
            {"kv-heads", "key and value heads; 0: as many as query heads", 0, 4, 0},
            {"seq", "positions of a sequence", 1024, 2048},
            {"head-dim", "columns of a head; of attention: at most 256", 64, 64, 2, 256}},
           {"place_qkv"},
           make<PlaceQkv>}};
}

}  // namespace cria
