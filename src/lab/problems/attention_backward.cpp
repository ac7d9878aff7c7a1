// Flash attention, backward: as a plan runs it, or one of its kernels alone.
#include <cmath>

#include "base/format.h"
#include "kernels/attention_backward_qkv.h"
#include "lab/problems/problems.h"

namespace cria {
namespace {

// all: as a plan runs it, in one pass where that suits, else dq, then dk and dv.
enum class Part { all, q, kv, qkv };

const char* name_of(Part part) {
  switch (part) {
    case Part::q:
      return kernels::AttentionBackwardQArgs<float>::kernel;
    case Part::kv:
      return kernels::AttentionBackwardKvArgs<float>::kernel;
    case Part::qkv:
      return kernels::AttentionBackwardQkvArgs<float>::kernel;
    case Part::all:
      break;
  }
  return "attention_backward";
}

class AttentionBackward final : public Problem {
 public:
  AttentionBackward(const ProblemRequest& request, Part part)
      : Problem(request),
        part_(part),
        makes_dq_(part != Part::kv),
        makes_dkv_(part != Part::q),
        heads_(request["heads"]),
        kv_heads_(request["kv-heads"] > 0 ? request["kv-heads"] : heads_),
        length_(request["seq"]),
        head_dim_(request["head-dim"]),
        causal_(request["causal"] != 0),
        tf32_(request["tf32"] != 0),
        scale_(1 / std::sqrt(float(head_dim_))) {
    if (heads_ % kv_heads_ != 0)
      fail_f("--heads {} is not a multiple of --kv-heads {}: give each key head equally many",
             heads_, kv_heads_);
    request.product({"batch", "heads", "seq"}, 2);
    const int batch = request["batch"], heads = batch * heads_, kv_heads = batch * kv_heads_;
    const double row_bytes = double(head_dim_) * size_of(dtype());
    plan_sets(4.0 * (heads + kv_heads) * length_ * row_bytes);
    const int again = makes_dq_ && makes_dkv_ ? keys_seen_again(heads, kv_heads) : 0;
    for (int set = 0; set < sets(); ++set)
      data_.push_back({&input(heads, length_, head_dim_), &input(kv_heads, length_, head_dim_),
                       &input(kv_heads, length_, head_dim_), &input(heads, length_, head_dim_),
                       &scratch_of(dtype(), heads, length_, head_dim_),
                       &scratch_of(DType::f32, 1, heads, length_),
                       &scratch_of(DType::f32, 1, heads, length_), &result(makes_dq_, heads),
                       &result(makes_dkv_, kv_heads), &result(makes_dkv_, kv_heads),
                       &scratch_of(DType::f32, 2 * kv_heads, again, head_dim_)});
    with_float(dtype(), [&](auto t) { add_kernels<decltype(t)>(); });
    // As published figures count: the products, five for all, half of each where causal.
    const double products = part == Part::q ? 3 : part == Part::kv ? 4 : 5;
    const Set& s = data_[0];
    const double in = 2.0 * double(s.q->bytes() + s.k->bytes()) + double(s.lse->bytes());
    set_cost({.flops = 2 * products * heads * head_dim_ * length_ * length_ * (causal_ ? 0.5 : 1.0),
              .bytes_read = in + double(makes_dq_ ? s.o->bytes() : s.delta->bytes()),
              .bytes_written = double((makes_dq_ ? s.dq->bytes() : 0) +
                                      (makes_dkv_ ? s.dk->bytes() + s.dv->bytes() : 0))});
  }

  Ceiling ceiling() const override { return compute_ceiling(device(), dtype(), tf32_); }

 private:
  struct Set {
    const Operand *q, *k, *v, *dout, *o, *lse, *delta, *dq, *dk, *dv, *so_far;
  };

  int keys_seen_again(int heads, int kv_heads) const {
    kernels::AttentionBackwardQkvArgs<float> sizes{};
    sizes.q = batch_of<const float>(nullptr, heads, length_, head_dim_);
    sizes.k = batch_of<const float>(nullptr, kv_heads, length_, head_dim_);
    sizes.causal = causal_;
    return sizes.seen_again();
  }
  const Operand& result(bool checked, int heads) {
    return checked ? output(heads, length_, head_dim_)
                   : scratch_of(dtype(), heads, length_, head_dim_);
  }

  template <class T>
  kernels::AttentionBackwardInputs<T> inputs(const Set& s) const {
    return {.q = s.q->tensor<T>(),
            .k = s.k->tensor<T>(),
            .v = s.v->tensor<T>(),
            .dout = s.dout->tensor<T>(),
            .lse = s.lse->tensor<float>(),
            .scale = scale_,
            .causal = causal_,
            .precision = dot_precision(tf32_)};
  }
  template <class T>
  kernels::AttentionBackwardQArgs<T> q_args(const Set& s) const {
    return {inputs<T>(s), s.o->tensor<T>(), s.dq->tensor<T>(), s.delta->tensor<float>()};
  }
  template <class T>
  kernels::AttentionBackwardKvArgs<T> kv_args(const Set& s) const {
    return {inputs<T>(s), s.delta->tensor<float>(), s.dk->tensor<T>(), s.dv->tensor<T>()};
  }
  template <class T>
  kernels::AttentionBackwardQkvArgs<T> qkv_args(const Set& s) const {
    return {
        inputs<T>(s),      s.o->tensor<T>(),         s.dq->tensor<T>(),        s.dk->tensor<T>(),
        s.dv->tensor<T>(), s.delta->tensor<float>(), s.so_far->tensor<float>()};
  }

  template <class T>
  void add_kernels() {
    const std::string name = name_of(part_);
    const auto first = qkv_args<T>(data_[0]);
    const bool one_pass =
        part_ == Part::qkv || (part_ == Part::all && suits(device(), call_of(first)));
    for (const Set& s : data_) {
      if (one_pass)
        add_call(name, qkv_args<T>(s));
      else if (makes_dq_)
        add_call(name, q_args<T>(s));
      else
        add_call(name, kv_args<T>(s));
    }
    if (part_ == Part::all && !one_pass)
      set_after(name, [this](Stream& stream, int turn) {
        launch(stream, kv_args<T>(data_[turn % data_.size()]));
      });
  }

  // What the forward pass saves and, for dk and dv alone, what the other kernel leaves.
  void prepare(Stream& stream) override {
    with_float(dtype(), [&](auto t) {
      using T = decltype(t);
      for (const Set& s : data_) {
        launch(stream, kernels::AttentionForwardArgs<T>{.q = s.q->tensor<T>(),
                                                        .k = s.k->tensor<T>(),
                                                        .v = s.v->tensor<T>(),
                                                        .o = s.o->tensor<T>(),
                                                        .lse = s.lse->tensor<float>(),
                                                        .scale = scale_,
                                                        .causal = causal_,
                                                        .precision = dot_precision(tf32_)});
        if (!makes_dq_) launch(stream, q_args<T>(s));
      }
    });
  }

  // Weight and score gradient of one query and key, given what the forward pass saved, and a bound
  // on the magnitudes that add up to the gradient.
  struct Pair {
    double weight = 0, dscore = 0, norm = 0;
  };
  Pair pair(const double* q, const double* k, const double* v, const double* dout, const double* o,
            double lse) const {
    double score = 0, dp = 0, size = 0;
    for (int c = 0; c < head_dim_; ++c) {
      score += q[c] * k[c];
      dp += dout[c] * (v[c] - o[c]);
      size += std::abs(dout[c]) * (std::abs(v[c]) + std::abs(o[c]));
    }
    const double weight = std::exp(scale_ * score - lse);
    return {weight, scale_ * weight * dp, scale_ * weight * size};
  }

  int64_t kv_head_of(int64_t head) const {
    return head / heads_ * kv_heads_ + head % heads_ / (heads_ / kv_heads_);
  }

  Accuracy check_dq(const ErrorBound& bound) const {
    const Set& s = data_[0];
    const int64_t d = head_dim_, n = length_;
    return check_output(*s.dq, bound, 6.0 * n, [&](int64_t row, auto cols, auto want) {
      const int64_t kv = kv_head_of(row / n) * n * d, seen = causal_ ? row % n + 1 : n;
      const std::vector<double> q = s.q->held(row * d, d), dout = s.dout->held(row * d, d);
      const std::vector<double> o = s.o->fetched(row * d, d), lse = s.lse->fetched(row, 1);
      const std::vector<double> k = s.k->held(kv, seen * d), v = s.v->held(kv, seen * d);
      for (int64_t j = 0; j < seen; ++j) {
        const Pair p = pair(q.data(), &k[j * d], &v[j * d], dout.data(), o.data(), lse[0]);
        for (size_t i = 0; i < cols.size(); ++i) {
          want[i].value += p.dscore * k[j * d + cols[i]];
          want[i].norm += p.norm * std::abs(k[j * d + cols[i]]);
        }
      }
    });
  }

  Accuracy check_dk_or_dv(const Operand& out, const ErrorBound& bound) const {
    const Set& s = data_[0];
    const int64_t d = head_dim_, n = length_, group = heads_ / kv_heads_;
    return check_output(out, bound, 8.0 * n * group, [&](int64_t row, auto cols, auto want) {
      const std::vector<double> k = s.k->held(row * d, d), v = s.v->held(row * d, d);
      const int64_t first = causal_ ? row % n : 0, seen = n - first;
      for (int64_t g = 0; g < group; ++g) {
        const int64_t at = (row / n * group + g) * n + first;
        const std::vector<double> q = s.q->held(at * d, seen * d),
                                  o = s.o->fetched(at * d, seen * d);
        const std::vector<double> dout = s.dout->held(at * d, seen * d),
                                  lse = s.lse->fetched(at, seen);
        for (int64_t j = 0; j < seen; ++j) {
          const Pair p = pair(&q[j * d], k.data(), v.data(), &dout[j * d], &o[j * d], lse[j]);
          for (size_t i = 0; i < cols.size(); ++i) {
            const int64_t e = j * d + cols[i];
            want[i].value += &out == s.dk ? p.dscore * q[e] : p.weight * dout[e];
            want[i].norm += &out == s.dk ? p.norm * std::abs(q[e]) : p.weight * std::abs(dout[e]);
          }
        }
      }
    });
  }

  Accuracy check_results() const override {
    // Weights and their gradients are rounded to the operands' type before they are multiplied.
    const ErrorBound bound{.length = length_ * (heads_ / kv_heads_),
                           .inner = 2 * product_roundoff(dtype(), tf32_) + 2 * roundoff(dtype())};
    Accuracy total;
    if (makes_dq_) total.include(check_dq(bound));
    if (makes_dkv_) {
      total.include(check_dk_or_dv(*data_[0].dk, bound));
      total.include(check_dk_or_dv(*data_[0].dv, bound));
    }
    return total;
  }

  const Part part_;
  const bool makes_dq_, makes_dkv_;
  const int heads_, kv_heads_, length_, head_dim_;
  const bool causal_, tf32_;
  const float scale_;
  std::vector<Set> data_;
};

template <Part part>
std::unique_ptr<Problem> make_part(const ProblemRequest& request) {
  return std::make_unique<AttentionBackward>(request, part);
}

}  // namespace

std::vector<ProblemSpec> attention_backward_problems() {
  const std::vector<Parameter> sizes = attention_parameters();
  return {{"attention_backward",
           "flash attention backward, as a plan runs it: in one pass, or dq, then dk and dv",
           sizes,
           {"attention_backward_q", "attention_backward_kv", "attention_backward_qkv"},
           make_part<Part::all>},
          {"attention_backward_q",
           "the part of flash attention backward that makes dq",
           sizes,
           {"attention_backward_q"},
           make_part<Part::q>},
          {"attention_backward_kv",
           "the part of flash attention backward that makes dk and dv",
           sizes,
           {"attention_backward_kv"},
           make_part<Part::kv>},
          {"attention_backward_qkv",
           "flash attention backward in one pass",
           sizes,
           {"attention_backward_qkv"},
           make_part<Part::qkv>}};
}

}  // namespace cria
