// Plan baseline: one kernel per operation, and attention that materialises its scores. Nothing is
// fused, so every intermediate result goes through memory; the other plans are measured against
// this.
#pragma once

#include "plans/scores.h"

namespace cria {

template <class T>
class BaselinePlan final : public ScoresPlan<T> {
 public:
  using ScoresPlan<T>::ScoresPlan;
  void place(Arena& arena) override;

 private:
  void block_forward(int layer) override;
  void block_backward(int layer) override;
  void attention_backward(int layer);
  void ffn_backward(int layer);
  void softmax(Tensor<T> scores) override;
  void softmax_backward(Tensor<T> weights, Tensor<T> d) override;

  // y = x + y
  void add(Tensor<const T> x, Tensor<T> y);
  void multiply_elements(Tensor<const T> x, Tensor<const T> y, Tensor<T> z);
  void scale(Tensor<T> x, float factor);

  // What a block keeps for its backward pass.
  struct Block {
    Tensor<T> q, k, v;  // [R, HK], [R, GK], [R, GK]
    typename ScoresPlan<T>::Heads apart;
    Tensor<T> weights;    // softmax of the scores, [B, H, T, T]
    Tensor<T> o_apart;    // [B, H, T, K]
    Tensor<T> o;          // [R, HK]
    Tensor<T> h;          // [R, D], after attention's residual
    Tensor<T> m;          // [R, D], its norm
    Tensor<float> r;      // [R], the norm's statistics
    Tensor<T> gate, up;   // [R, F]
    Tensor<T> silu, act;  // [R, F]
  };
  std::vector<Block> blocks_;

  // What lives within a block's passes only.
  Tensor<T> branch_;     // [R, D], a branch before it joins the stream
  Tensor<T> d_o_, d_q_;  // [R, HK]
  Tensor<T> d_k_, d_v_;  // [R, GK]
  Tensor<T> d_o_apart_;  // [B, H, T, K]
  typename ScoresPlan<T>::Heads d_apart_;
  Tensor<T> d_act_, d_gate_, d_up_;  // [R, F]
};

}  // namespace cria
