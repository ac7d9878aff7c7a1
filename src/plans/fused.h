// Plan fused: one product for q, k and v, one for gate and up, and one kernel where baseline has
// several: residual + norm, scale + mask + softmax, silu + up. Attention still materialises its
// scores.
#pragma once

#include "plans/scores.h"

namespace cria {

template <class T>
class FusedPlan final : public ScoresPlan<T> {
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

  // h = x + branch, y = norm(h)
  void add_norm(Tensor<const T> x, Tensor<const T> branch, Tensor<const T> w, Tensor<T> h,
                Tensor<T> y, Tensor<float> r);

  // What a block keeps for its backward pass.
  struct Block {
    typename ScoresPlan<T>::Heads apart;
    Tensor<T> weights;  // softmax of the scores, [B, H, T, T]
    Tensor<T> o;        // [R, HK]
    Tensor<T> h, m;     // [R, D], after attention's residual, and its norm
    Tensor<float> r;    // [R], the norm's statistics
    Tensor<T> gate_up;  // [R, 2F]
    Tensor<T> act;      // [R, F]
  };
  std::vector<Block> blocks_;

  // What lives within a block's passes only.
  Tensor<T> branch_;   // [R, D], a branch before it joins the stream
  Tensor<T> qkv_;      // [R, (H + 2G)K], and its gradient
  Tensor<T> o_apart_;  // [B, H, T, K], o or its gradient
  typename ScoresPlan<T>::Heads d_apart_;
  Tensor<T> d_o_;    // [R, HK]
  Tensor<T> d_act_;  // [R, F]
};

}  // namespace cria
