// The optimizer's step and the accumulation of gradients: bound by memory.
#include "kernels/adamw.h"

#include <algorithm>
#include <cmath>

#include "lab/problems/problems.h"

namespace cria {
namespace {

using kernels::kAdamWHypers;

class AdamW final : public Problem {
 public:
  explicit AdamW(const ProblemRequest& request) : Problem(request) {
    const int n = request["n"];
    const bool splits = size_of(dtype()) == 2;
    plan_sets(double(n) * (3 * sizeof(float) + size_of(dtype())));
    given_ = &input(1, 1, n);
    hyper_ = &scratch_of(DType::f32, 1, 1, kAdamWHypers);
    norm2_ = &scratch_of(DType::f32, 1, 1, 1);
    for (int set = 0; set < sets(); ++set) {
      data_.push_back({&scratch_of(dtype(), 1, 1, n), &scratch_of(dtype(), 1, 1, splits ? n : 0),
                       &scratch_of(DType::f32, 1, 1, n), &scratch_of(DType::f32, 1, 1, n),
                       &input(1, 1, n)});
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        const Set& s = data_.back();
        kernels::AdamWArgs<T> args{
            .weights = s.weights->tensor<T>(),
            .rest = vector_of(static_cast<int16_t*>(s.rest->data()), s.rest->cols()),
            .m = s.m->tensor<float>(),
            .v = s.v->tensor<float>(),
            .grad = s.grad->tensor<T>(),
            .hyper = hyper_->tensor<float>(),
            .norm2 = norm2_->tensor<float>()};
        args.decayed = n / 2;
        add_call("adamw", args);
      });
    }
  }

  Ceiling ceiling() const override { return update_ceiling(device(), cost().bytes()); }

 private:
  struct Set {
    const Operand *weights, *rest, *m, *v, *grad;
  };
  static constexpr float kRate = 0.01f, kBeta1 = 0.9f, kBeta2 = 0.95f, kEps = 1e-8f, kDecay = 0.1f;

  // The first step, without clipping: m and v are 0, and so is the rest of 16-bit weights.
  void prepare(Stream& stream) override {
    const float hyper[kAdamWHypers] = {
        kRate, kBeta1, kBeta2, kEps, 1 / (1 - kBeta1), 1 / (1 - kBeta2), kDecay, 0};
    stream.copy(hyper_->data(), hyper, sizeof(hyper));
    norm2_->clear(stream);
    for (const Set& s : data_) {
      s.weights->copy_from(stream, *given_);
      for (const Operand* o : {s.rest, s.m, s.v}) o->clear(stream);
    }
    stream.synchronize();
  }
  Accuracy check_results() const override {
    const Set& s = data_[0];
    const auto grad = [&](int64_t i) { return s.grad->held(i); };
    Accuracy all = check(*s.m, [&](int64_t i) { return (1 - double(kBeta1)) * grad(i); });
    all.include(check(*s.v, [&](int64_t i) { return (1 - double(kBeta2)) * grad(i) * grad(i); }));
    const auto weight = [&](int64_t i) {
      const double w = given_->held(i), g = grad(i);
      const double step = g / (std::abs(g) + kEps) + (i < given_->size() / 2 ? kDecay * w : 0);
      return w - kRate * step;
    };
    all.include(check(*s.weights, weight));
    if (size_of(dtype()) == 2) all.include(check_joined(s, weight));
    return all;
  }
  // 16-bit weights and the rest of their bits are as exact as f32: at both ends, and where decay
  // ends.
  template <class F>
  static Accuracy check_joined(const Set& s, F exact) {
    const int64_t n = s.weights->size(), most = std::min<int64_t>(n, 1 << 14);
    Accuracy all;
    for (int64_t begin : {int64_t{0}, (n - most) / 2, n - most}) {
      const auto high = s.weights->fetched_bits(begin, most);
      const auto low = s.rest->fetched_bits(begin, most);
      for (int64_t i = 0; i < most; ++i) {
        const float got = join_halves(to_float(bf16{high[i]}), static_cast<int16_t>(low[i]));
        const Exact want{exact(begin + i), 0.01};
        const double error = std::abs(got - want.value);
        all.include({error, error <= ErrorBound{.length = 16}.of(DType::f32, want)});
      }
    }
    return all;
  }
  template <class F>
  static Accuracy check(const Operand& out, F exact) {
    return check_output(out, {.length = 16}, 8, [&](int64_t, auto cols, auto want) {
      for (size_t i = 0; i < cols.size(); ++i) want[i] = {exact(cols[i]), 0.01};
    });
  }

  const Operand *given_ = nullptr, *hyper_ = nullptr, *norm2_ = nullptr;
  std::vector<Set> data_;
};

class Accumulate final : public Problem {
 public:
  explicit Accumulate(const ProblemRequest& request) : Problem(request) {
    const int n = request["n"];
    plan_sets(double(n) * (sizeof(float) + size_of(dtype())));
    for (int set = 0; set < sets(); ++set) {
      const Operand& x = input(1, 1, n);
      sums_.push_back(&scratch_of(DType::f32, 1, 1, n));
      if (set == 0) x_ = &x;
      with_float(dtype(), [&](auto t) {
        using T = decltype(t);
        add_call("accumulate",
                 kernels::AccumulateArgs<T>{x.tensor<T>(), sums_.back()->tensor<float>()});
      });
    }
  }

  Ceiling ceiling() const override { return update_ceiling(device(), cost().bytes()); }

 private:
  void prepare(Stream& stream) override {
    for (const Operand* sum : sums_) sum->clear(stream);
  }
  Accuracy check_results() const override {
    return check_output(*sums_[0], {}, 1, [&](int64_t, auto cols, auto want) {
      for (size_t i = 0; i < cols.size(); ++i) want[i].value = x_->held(cols[i]);
    });
  }

  const Operand* x_ = nullptr;
  std::vector<const Operand*> sums_;
};

}  // namespace

std::vector<ProblemSpec> adamw_problems() {
  const std::vector<Parameter> sizes = {{"n", "elements; of gemm: columns of c", 1 << 22, 1 << 28}};
  return {{"adamw", "a step of AdamW over all weights at once", sizes, {"adamw"}, make<AdamW>},
          {"accumulate", "gradients added up in fp32", sizes, {"accumulate"}, make<Accumulate>}};
}

}  // namespace cria
