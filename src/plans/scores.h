// What plans with their attention scores in memory share: heads apart, [B, heads, T, K], and
// library products around a softmax that each plan does its own way.
#pragma once

#include "plans/plan.h"

namespace cria {

template <class T>
class ScoresPlan : public Plan<T> {
 public:
  using Plan<T>::Plan;
  void place(Arena& arena) override;

 protected:
  struct Heads {
    Tensor<T> q;     // [B, H, T, K]
    Tensor<T> k, v;  // [B, G, T, K]
  };
  Heads take_heads(Arena& arena) const;
  Tensor<T> take_apart(Arena& arena, int heads, int cols) const;  // [B, heads, T, cols]
  Tensor<T> take_queries(Arena& arena) const;                     // [B, H, T, K]
  Tensor<T> take_scores(Arena& arena) const;                      // [B, H, T, T]

  void copy_heads(Tensor<const T> x, Tensor<T> y);

  // weights = softmax(scale q kᵀ), o = weights v
  void attend(const Heads& heads, Tensor<T> weights, Tensor<T> o);
  // dv = weightsᵀ do, dweights = do vᵀ, and through the softmax dq = dscores k, dk = dscoresᵀ q
  void attend_backward(const Heads& heads, Tensor<T> weights, Tensor<T> d_o, const Heads& d);

 private:
  // Scores become weights: scaled, causal, each row's sum 1.
  virtual void softmax(Tensor<T> scores) = 0;
  // d, the weights' gradient, becomes that of the products.
  virtual void softmax_backward(Tensor<T> weights, Tensor<T> d) = 0;

  // The matrices of a group's heads, one above the other with their gaps: [B G] of [H/G T, cols].
  Tensor<T> by_group(Tensor<T> apart) const;
  // A product for each group.
  void multiply_groups(Transposed transposed, Tensor<const T> a, Tensor<const T> b, Tensor<T> c);

  Tensor<T> d_scores_;  // [B, H, T, T]
};

}  // namespace cria
