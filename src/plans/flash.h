// Plan flash: attention that never materialises its scores, forward and backward, residuals added
// in the epilogues of products, one rotation for q and k, and norms that the backward pass makes
// again instead of keeping them. With `recompute` it keeps nothing of the feed-forward part either.
#pragma once

#include "kernels/attention_backward_qkv.h"
#include "kernels/gemm_group.h"
#include "kernels/rope.h"
#include "plans/plan.h"

namespace cria {

template <class T>
class FlashPlan final : public Plan<T> {
 public:
  using Plan<T>::Plan;
  void place(Arena& arena) override;

 private:
  void block_forward(int layer) override;
  void block_backward(int layer) override;
  void attention_backward(int layer);
  kernels::AttentionBackwardQkvArgs<T> attention_gradients(int layer) const;
  void ffn_backward(int layer);
  // dw = dyᵀ x: at once, while dy or x is in a cache; in a small model, with the block's others in
  // one launch when the block ends.
  void weight_gradient(Tensor<const T> dy, Tensor<const T> x, Tensor<T> dw);
  bool own(Stage stage, StageSizes sizes) override;
  Choice gate_up_choice() const { return chooser_.choose(Stage::gate_up, gate_up_sizes()); }
  bool own_gate_up() { return own(Stage::gate_up, gate_up_sizes()); }
  StageSizes gate_up_sizes() const {
    return {this->rows(), pitch_of(this->config().ffn), pitch_of(this->config().dim)};
  }
  // Whether the gradients of q and k are turned back in the kernel that makes them.
  bool turns_gradients() const {
    return sizeof(T) == 2 && this->stream_.device().backend == Backend::cuda &&
           kernels::can_fuse_rope(this->config().head_dim);
  }
  // act = silu(gate) up, from m, and what the backward pass wants in gate_up.
  void activate(int layer, bool keep);
  // A norm is needed by one product only. It lies where the next tensor of its size will be
  // written, so that a cache need not write it to memory: n(i) in o, that of h in x(i + 1). The
  // backward pass makes both again, n(i) where q, k and v have been. Where rows of width D or
  // heads have gaps, which must stay zero, only tensors of one width share memory.
  bool keeps_norms() const override { return false; }
  Tensor<T> n(int i) const override {
    return i == this->config().layers ? Plan<T>::n(i) : norm_in(blocks_[i].o);
  }
  Tensor<T> n_again(int i) const { return norm_in(blocks_[i].qkv); }
  Tensor<T> m(int i) const { return this->x(i + 1); }
  Tensor<T> norm_in(Tensor<T> t) const {
    return own_n_.data ? own_n_ : matrix_of(t.data, this->rows(), this->config().dim);
  }

  // What a block keeps for its backward pass. With recompute, gate_up and act are shared by all.
  struct Block {
    Tensor<T> qkv;      // [R, (H + 2G)K], q and k turned
    Tensor<float> lse;  // [B H, T], of attention's rows
    Tensor<T> o;        // [R, HK]
    Tensor<T> h;        // [R, D], after attention's residual
    Tensor<float> r;    // [R], its norm's statistics
    Tensor<T> gate_up;  // [R, 2F]: fused, act's derivatives by gate and up; else these themselves
    Tensor<T> act;      // [R, F]: fused, the activation; else shared by all, which make it again
  };
  std::vector<Block> blocks_;

  // What lives within a block's passes only.
  Tensor<T> own_n_;    // [R, D], the norms n(i) where they cannot lie in o
  Tensor<T> d_qkv_;    // [R, (H + 2G)K]
  Tensor<T> own_d_o_;  // [R, HK], the gradient of o where it cannot lie in dn_
  Tensor<T> d_h_;      // [R, D], the gradient of h
  Tensor<T> d_o() const {
    return own_d_o_.data ? own_d_o_
                         : matrix_of(this->dn_.data, this->rows(), this->config().query_width());
  }
  const Chooser chooser_{this->stream_.device().backend, describe(this->stream_.device()).cores,
                         dtype_of<T>, this->config().head_dim};
  bool one_pass_ = false;              // all gradients of attention in one kernel
  Tensor<float> delta_;                // [B H, T]
  Tensor<float> so_far_;               // [2 B G, S', K], if one pass sees S' keys several times
  kernels::GemmGroupArgs<T> group_{};  // weight gradients of the block, `grouped_` so far
  int grouped_ = 0;
};

}  // namespace cria
