// Flash attention against the unfused sequence: product, softmax, product, with the scores in
// memory.
#include "kernels/attention.h"

#include <cmath>

#include "base/format.h"
#include "kernels/softmax.h"
#include "lab/problems/problems.h"

namespace cria {
namespace {

class Attention final : public Problem {
 public:
  explicit Attention(const ProblemRequest& request)
      : Problem(request),
        heads_(request["heads"]),
        kv_heads_(request["kv-heads"] > 0 ? request["kv-heads"] : heads_),
        length_(request["seq"]),
        head_dim_(request["head-dim"]),
        causal_(request["causal"] != 0),
        tf32_(request["tf32"] != 0),
        scale_(1 / std::sqrt(float(head_dim_))) {
    const int batch = request["batch"];
    if (heads_ % kv_heads_ != 0)
      fail_f("--heads {} is not a multiple of --kv-heads {}: give each key head equally many",
             heads_, kv_heads_);
    const double row_bytes = double(head_dim_) * size_of(dtype());
    request.product({"batch", "heads", "seq"}, 2);
    plan_sets(2.0 * batch * (heads_ + kv_heads_) * length_ * row_bytes);
    for (int set = 0; set < sets(); ++set) {
      data_.push_back({&input(batch * heads_, length_, head_dim_),
                       &input(batch * kv_heads_, length_, head_dim_),
                       &input(batch * kv_heads_, length_, head_dim_),
                       &output(batch * heads_, length_, head_dim_)});
      add_kernel(data_.back());
    }
    // As published figures count: the two products, half of each where causal.
    Cost cost = Problem::cost();
    cost.flops = 4.0 * batch * heads_ * head_dim_ * length_ * length_ * (causal_ ? 0.5 : 1.0);
    set_cost(cost);
    if (!causal_ && kv_heads_ == heads_) add_unfused(batch);
  }

  Ceiling ceiling() const override { return compute_ceiling(device(), dtype(), tf32_); }

 private:
  struct Set {
    const Operand *q, *k, *v, *o;
  };

  void add_kernel(const Set& set) {
    with_float(dtype(), [&](auto t) {
      using T = decltype(t);
      kernels::AttentionForwardArgs<T> args{set.q->tensor<T>(), set.k->tensor<T>(),
                                            set.v->tensor<T>(), set.o->tensor<T>()};
      args.scale = scale_, args.causal = causal_, args.precision = dot_precision(tf32_);
      add_call("attention", args);
    });
  }

  // Scores are rounded to the operands' type in memory, as an unfused model has them.
  void add_unfused(int batch) {
    const Operand& scores = scratch_of(dtype(), batch * heads_, length_, length_);
    const Set& first = data_[0];
    const Precision precision = library_precision(tf32_);
    const Product qk = product_of({.trans_b = true, .precision = precision, .alpha = scale_},
                                  *first.q, *first.k, scores);
    const Product pv = product_of({.precision = precision}, scores, *first.v, *first.o);
    add_rival({"product, softmax, product", [this, &scores, qk, pv](Stream& s, int turn) {
                 const Set& set = data_[turn % data_.size()];
                 multiply(s, qk, set.q->data(), set.k->data(), scores.data());
                 softmax_rows(s, scores);
                 multiply(s, pv, scores.data(), set.v->data(), set.o->data());
               }});
  }

  void softmax_rows(Stream& stream, const Operand& scores) const {
    with_float(dtype(), [&](auto t) {
      using T = decltype(t);
      const Tensor<T> all = scores.tensor<T>();
      launch(stream, kernels::SoftmaxForwardArgs<T>{all, all});
    });
  }

  Accuracy check_results() const override {
    const Set& set = data_[0];
    const int64_t d = head_dim_, n = length_;
    // The weights are rounded to the operands' type before they meet v.
    const ErrorBound bound{.length = n,
                           .inner = product_roundoff(dtype(), tf32_) + 2 * roundoff(dtype())};
    return check_output(*set.o, bound, 4.0 * n, [&](int64_t row, auto cols, auto want) {
      const int64_t head = row / n, query = row % n;
      const int64_t kv = head / heads_ * kv_heads_ + head % heads_ / (heads_ / kv_heads_);
      const int64_t seen = causal_ ? query + 1 : n;
      const std::vector<double> q = set.q->held(row * d, d);
      const std::vector<double> k = set.k->held(kv * n * d, seen * d),
                                v = set.v->held(kv * n * d, seen * d);
      std::vector<double> weight(seen);
      double top = -INFINITY, total = 0;
      for (int64_t j = 0; j < seen; ++j) {
        for (int64_t c = 0; c < d; ++c) weight[j] += scale_ * q[c] * k[j * d + c];
        top = std::max(top, weight[j]);
      }
      for (double& w : weight) total += w = std::exp(w - top);
      for (size_t i = 0; i < cols.size(); ++i) {
        want[i] = {};
        for (int64_t j = 0; j < seen; ++j) {
          const double term = weight[j] / total * v[j * d + cols[i]];
          want[i].value += term, want[i].norm += std::abs(term);
        }
      }
    });
  }

  const int heads_, kv_heads_, length_, head_dim_;
  const bool causal_, tf32_;
  const float scale_;
  std::vector<Set> data_;
};

}  // namespace

std::vector<Parameter> attention_parameters() {
  return {{"batch", "sequences", 1, 4},
          {"heads", "query heads", 4, 16},
          {"kv-heads", "key and value heads; 0: as many as query heads", 0, 0, 0},
          {"seq", "positions of a sequence", 1024, 2048},
          {"head-dim", "columns of a head; of attention: at most 256", 64, 128, 1, 256},
          {"causal", "1: a position sees only those up to its own, 0: all", 1, 1, 0, 1},
          tf32_parameter()};
}

std::vector<ProblemSpec> attention_problems() {
  return {{"attention",
           "flash attention forward, causal or full, with grouped heads",
           attention_parameters(),
           {"attention_forward"},
           make<Attention>}};
}

}  // namespace cria
