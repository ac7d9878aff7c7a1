// Attention in double, forward and backward, with the bounds that errors are measured by.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tile/kernel.h"

namespace cria::test {

struct AttentionProblem {
  int heads, kv_heads, queries, keys, head_dim;
  bool causal;
  // How kernels are to do it.
  tile::DotPrecision precision = tile::DotPrecision::kFp32;
  bool turns = false;     // dq and dk are gradients of what rope has turned, and turned back
  bool one_pass = false;  // attention_backward_qkv, else the other two

  double scale() const { return 1 / std::sqrt(double(head_dim)); }
  int group() const { return heads / kv_heads; }
  int seen(int query) const { return causal ? query + keys - queries + 1 : keys; }
  int64_t q_size() const { return int64_t{heads} * queries * head_dim; }
  int64_t kv_size() const { return int64_t{kv_heads} * keys * head_dim; }
};

// Operands as the reference sees them: [heads, tokens, head_dim] without gaps.
using Values = std::vector<double>;
struct Inputs {
  Values q, k, v, dout;
};

inline double dot(const double* a, const double* b, int n) {
  double sum = 0;
  for (int e = 0; e < n; ++e) sum += a[e] * b[e];
  return sum;
}

// One row of softmax(scale q kᵀ), and its lse.
inline double weights_of(const AttentionProblem& p, const Inputs& in, int h, int i,
                         Values& weight) {
  const int d = p.head_dim;
  weight.resize(p.seen(i));
  double top = -INFINITY, total = 0;
  for (int j = 0; j < p.seen(i); ++j) {
    const int64_t key = int64_t{h / p.group()} * p.keys + j;
    weight[j] = p.scale() * dot(&in.q[(int64_t{h} * p.queries + i) * d], &in.k[key * d], d);
    top = std::max(top, weight[j]);
  }
  for (double& w : weight) total += w = std::exp(w - top);
  for (double& w : weight) w /= total;
  return top + std::log(total);
}

struct Forward {
  Values o, lse;
};
inline Forward forward(const AttentionProblem& p, const Inputs& in) {
  Forward out{Values(p.q_size()), Values(int64_t{p.heads} * p.queries)};
  Values weight;
  for (int h = 0; h < p.heads; ++h)
    for (int i = 0; i < p.queries; ++i) {
      const int64_t row = int64_t{h} * p.queries + i;
      out.lse[row] = weights_of(p, in, h, i, weight);
      for (int j = 0; j < p.seen(i); ++j)
        for (int e = 0; e < p.head_dim; ++e)
          out.o[row * p.head_dim + e] +=
              weight[j] * in.v[(int64_t{h / p.group()} * p.keys + j) * p.head_dim + e];
    }
  return out;
}

// Gradients of sum(o dout), and the largest sums of magnitudes behind each.
struct Gradients {
  Values dq, dk, dv, delta;
  double dq_norm = 0, dk_norm = 0, dv_norm = 0, delta_norm = 0;
};
inline Gradients backward(const AttentionProblem& p, const Inputs& in, const Values& o) {
  Gradients g{Values(p.q_size()), Values(p.kv_size()), Values(p.kv_size()),
              Values(o.size() / p.head_dim)};
  Values dq_abs(g.dq.size()), dk_abs(g.dk.size()), dv_abs(g.dv.size()), weight;
  const int d = p.head_dim;
  const auto add = [](double& sum, double& size, double term, double bound) {
    sum += term, size += bound;
  };
  for (int h = 0; h < p.heads; ++h)
    for (int i = 0; i < p.queries; ++i) {
      const int64_t row = int64_t{h} * p.queries + i;
      const double *q = &in.q[row * d], *dout = &in.dout[row * d];
      double delta_abs = 0;
      for (int e = 0; e < d; ++e)
        add(g.delta[row], delta_abs, dout[e] * o[row * d + e], std::abs(dout[e] * o[row * d + e]));
      g.delta_norm = std::max(g.delta_norm, delta_abs);
      weights_of(p, in, h, i, weight);
      for (int j = 0; j < p.seen(i); ++j) {
        const int64_t key = int64_t{h / p.group()} * p.keys + j;
        double dp = 0, dp_abs = 0;
        for (int e = 0; e < d; ++e)
          add(dp, dp_abs, dout[e] * in.v[key * d + e], std::abs(dout[e] * in.v[key * d + e]));
        const double ds = weight[j] * (dp - g.delta[row]) * p.scale();
        const double ds_abs = weight[j] * (dp_abs + delta_abs) * p.scale();
        for (int e = 0; e < d; ++e) {
          const int64_t at_q = row * d + e, at_k = key * d + e;
          add(g.dq[at_q], dq_abs[at_q], ds * in.k[at_k], ds_abs * std::abs(in.k[at_k]));
          add(g.dk[at_k], dk_abs[at_k], ds * q[e], ds_abs * std::abs(q[e]));
          add(g.dv[at_k], dv_abs[at_k], weight[j] * dout[e], weight[j] * std::abs(dout[e]));
        }
      }
    }
  const auto largest = [](const Values& x) { return x.empty() ? 0 : *std::ranges::max_element(x); };
  g.dq_norm = largest(dq_abs), g.dk_norm = largest(dk_abs), g.dv_norm = largest(dv_abs);
  return g;
}

}  // namespace cria::test
