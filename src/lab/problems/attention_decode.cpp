// Attention of one position over those before it: bound by reading keys and values.
#include "kernels/attention_decode.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "lab/problems/problems.h"

namespace cria {
namespace {

class AttentionDecode final : public Problem {
 public:
  explicit AttentionDecode(const ProblemRequest& request)
      : Problem(request),
        heads_(request["heads"]),
        kv_heads_(request["kv-heads"] > 0 ? request["kv-heads"] : heads_),
        length_(request["seq"]),
        head_dim_(request["head-dim"]),
        scale_(1 / std::sqrt(float(head_dim_))) {
    const int batch = request["batch"];
    if (heads_ % kv_heads_ != 0)
      fail_f("--heads {} is not a multiple of --kv-heads {}: give each key head equally many",
             heads_, kv_heads_);
    plan_sets(2.0 * batch * kv_heads_ * length_ * head_dim_ * size_of(dtype()));
    for (int set = 0; set < sets(); ++set) {
      data_.push_back(
          {&input(batch * heads_, 1, head_dim_), &input(batch * kv_heads_, length_, head_dim_),
           &input(batch * kv_heads_, length_, head_dim_), &output(batch * heads_, 1, head_dim_)});
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        const Set& s = data_.back();
        add_call("attention_decode", kernels::AttentionDecodeArgs<T>{
                                         s.q->tensor<T>(), s.k->tensor<T>(), s.v->tensor<T>(),
                                         s.o->tensor<T>(), scale_, length_});
      });
    }
  }

  Ceiling ceiling() const override { return read_ceiling(device(), cost().bytes()); }

 private:
  struct Set {
    const Operand *q, *k, *v, *o;
  };

  Accuracy check_results() const override {
    const Set& s = data_[0];
    const int64_t d = head_dim_, n = length_;
    return check_output(*s.o, {.length = n + d}, 4.0 * n, [&](int64_t head, auto cols, auto want) {
      const int64_t kv = head / (heads_ / kv_heads_);
      const std::vector<double> q = s.q->held(head * d, d);
      const std::vector<double> k = s.k->held(kv * n * d, n * d), v = s.v->held(kv * n * d, n * d);
      std::vector<double> weight(n);
      double top = -INFINITY, total = 0;
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t c = 0; c < d; ++c) weight[j] += scale_ * q[c] * k[j * d + c];
        top = std::max(top, weight[j]);
      }
      for (double& w : weight) total += w = std::exp(w - top);
      for (size_t i = 0; i < cols.size(); ++i) {
        want[i] = {};
        for (int64_t j = 0; j < n; ++j) {
          const double term = weight[j] / total * v[j * d + cols[i]];
          want[i].value += term, want[i].norm += std::abs(term);
        }
      }
    });
  }

  const int heads_, kv_heads_, length_, head_dim_;
  const float scale_;
  std::vector<Set> data_;
};

}  // namespace

std::vector<ProblemSpec> attention_decode_problems() {
  return {{"attention_decode",
           "attention of one position over those before it",
           {{"batch", "sequences", 1, 4},
            {"heads", "query heads", 4, 16},
            {"kv-heads", "key and value heads; 0: as many as query heads", 0, 0, 0},
            {"seq", "positions of a sequence", 1024, 2048},
            {"head-dim", "columns of a head; of attention: at most 256", 64, 128, 1, 256}},
           {"attention_decode"},
           make<AttentionDecode>}};
}

}  // namespace cria
