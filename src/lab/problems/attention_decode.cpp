// Attention of one position over those before it: bound by reading keys and values.
#include "kernels/attention_decode.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "kernels/shares.h"
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
    request.product({"batch", "heads"});
    plan_sets(2.0 * batch * kv_heads_ * length_ * head_dim_ * size_of(dtype()));
    const int kv = batch * kv_heads_, sharing = heads_ / kv_heads_;
    const int parts = kernels::decode_parts(device(), kv, length_);
    request.product({"batch", "heads"}, parts);
    const int rows = sharing * parts;
    for (int set = 0; set < sets(); ++set)
      data_.push_back({&input(kv, sharing, head_dim_), &input(kv, length_, head_dim_),
                       &input(kv, length_, head_dim_), &output(kv, sharing, head_dim_),
                       &scratch_of(DType::f32, kv, rows, head_dim_),
                       &scratch_of(DType::f32, 1, kv, rows)});
    with_float(dtype(), [&](auto t) { add_kernels<decltype(t)>(); });
  }

  Ceiling ceiling() const override { return read_ceiling(device(), cost().bytes()); }

 private:
  struct Set {
    const Operand *q, *k, *v, *o, *parts, *logs;
  };

  template <class T>
  kernels::AttentionDecodeArgs<T> args(const Set& s) const {
    return {.q = s.q->tensor<T>(),
            .k = s.k->tensor<T>(),
            .v = s.v->tensor<T>(),
            .o = s.o->tensor<T>(),
            .parts = s.parts->tensor<float>(),
            .logs = s.logs->tensor<float>(),
            .scale = scale_,
            .length = length_};
  }
  template <class T>
  void add_kernels() {
    for (const Set& s : data_) add_call("attention_decode", args<T>(s));
    const auto first = args<T>(data_[0]);
    if (first.part_count() == 1) return;
    Cost whole = first.cost();
    whole.bytes_written = double(first.o.bytes());
    set_cost(whole);
    set_after("attention_decode", [this](Stream& stream, int turn) {
      launch(stream, args<T>(data_[turn % data_.size()]).combine());
    });
  }

  Accuracy check_results() const override {
    const Set& s = data_[0];
    const int64_t d = head_dim_, n = length_;
    // The weights may be rounded to the operands' type before they meet v.
    const ErrorBound bound{.length = n + d, .inner = 2 * roundoff(dtype())};
    return check_output(*s.o, bound, 4.0 * n, [&](int64_t head, auto cols, auto want) {
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
           {"attention_decode", "attention_combine"},
           make<AttentionDecode>}};
}

}  // namespace cria
