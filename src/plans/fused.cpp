#include "plans/fused.h"

#include "kernels/launch.h"
#include "kernels/rmsnorm.h"
#include "kernels/silu.h"
#include "kernels/softmax.h"
#include "plans/packed.h"

namespace cria {

template <class T>
void FusedPlan<T>::place(Arena& arena) {
  ScoresPlan<T>::place(arena);
  const ModelConfig& c = this->config();
  auto take = [&](int cols) { return this->take(arena, cols); };
  blocks_.assign(c.layers, {});
  for (Block& b : blocks_) {
    b.apart = this->take_heads(arena);
    b.weights = this->take_scores(arena);
    b.o = take(c.query_width());
    b.h = take(c.dim), b.m = take(c.dim);
    b.r = matrix_of(arena.take<float>(this->rows()), this->rows(), 1);
    b.gate_up = take(c.gate_up_width()), b.act = take(c.ffn);
  }
  branch_ = take(c.dim);
  qkv_ = take(c.qkv_width());
  o_apart_ = this->take_queries(arena);
  d_apart_ = this->take_heads(arena);
  d_o_ = take(c.query_width());
  d_act_ = take(c.ffn);
}

template <class T>
void FusedPlan<T>::block_forward(int layer) {
  const ModelConfig& c = this->config();
  const auto& w = this->setup_.weights.layers[layer];
  const Block& b = blocks_[layer];
  const PackedHeads<T> heads(c, this->setup_.batch, this->setup_.seq, qkv_);

  this->linear(this->n(layer), w.qkv, qkv_);
  this->made_heads(layer, "v", heads.v_rows());
  this->rope(heads.q(), b.apart.q);
  this->rope(heads.k(), b.apart.k);
  this->copy_heads(heads.v(), b.apart.v);
  this->attend(b.apart, b.weights, o_apart_);
  this->copy_heads(o_apart_, this->heads_in_rows(b.o, c.heads));
  this->made_heads(layer, "attention", b.o);

  this->linear(b.o, w.o, branch_);
  add_norm(this->x(layer), branch_, w.ffn_norm, b.h, b.m, b.r);
  this->made(layer, "residual", b.h), this->made(layer, "ffn_norm", b.m);

  this->linear(b.m, w.gate_up, b.gate_up);
  const Halves<T> ffn(b.gate_up, this->config().ffn);
  launch(this->stream_,
         kernels::SiluUpForwardArgs<T>{
             .gate = with_gaps(ffn.gate), .up = with_gaps(ffn.up), .y = with_gaps(b.act)});
  this->made(layer, "activation", b.act);
  this->linear(b.act, w.down, branch_);
  add_norm(b.h, branch_, this->norm_weight(layer + 1), this->x(layer + 1), this->n(layer + 1),
           this->r(layer + 1));
}

template <class T>
void FusedPlan<T>::block_backward(int layer) {
  ffn_backward(layer);
  attention_backward(layer);
}

// x' = h + down(silu(gate) up), gate and up from m = norm(h)
template <class T>
void FusedPlan<T>::ffn_backward(int layer) {
  const auto& w = this->setup_.weights.layers[layer];
  const auto& g = this->setup_.gradients.layers[layer];
  const Block& b = blocks_[layer];
  const Tensor<T> d = this->d_, dn = this->dn_;

  this->linear_backward(b.act, w.down, d, d_act_, g.down);
  this->made(layer, "d_activation", d_act_);
  const Halves<T> ffn(b.gate_up, this->config().ffn);  // becomes its own gradient
  launch(this->stream_, kernels::SiluUpBackwardArgs<T>{.gate = with_gaps(ffn.gate),
                                                       .up = with_gaps(ffn.up),
                                                       .dy = with_gaps(d_act_),
                                                       .dgate = with_gaps(ffn.gate),
                                                       .dup = with_gaps(ffn.up)});
  this->linear_backward(b.m, w.gate_up, b.gate_up, dn, g.gate_up);
  this->made(layer, "d_ffn_norm", dn);
  this->norm_backward(b.h, w.ffn_norm, b.r, dn, d, d, g.ffn_norm);
  this->made(layer, "d_residual", d);
}

// h = x + o(softmax(scale q kᵀ) v), q, k and v from n = norm(x)
template <class T>
void FusedPlan<T>::attention_backward(int layer) {
  const ModelConfig& c = this->config();
  const auto& w = this->setup_.weights.layers[layer];
  const auto& g = this->setup_.gradients.layers[layer];
  const Block& b = blocks_[layer];
  const Tensor<T> d = this->d_, dn = this->dn_;

  this->linear_backward(b.o, w.o, d, d_o_, g.o);
  this->made_heads(layer, "d_attention", d_o_);
  this->copy_heads(this->heads_in_rows(d_o_, c.heads), o_apart_);
  this->attend_backward(b.apart, b.weights, o_apart_, d_apart_);

  const PackedHeads<T> d_heads(c, this->setup_.batch, this->setup_.seq, qkv_);
  this->rope_backward(d_apart_.q, d_heads.q());
  this->rope_backward(d_apart_.k, d_heads.k());
  this->copy_heads(d_apart_.v, d_heads.v());
  this->made_heads(layer, "d_q", d_heads.q_rows()),
      this->made_heads(layer, "d_k", d_heads.k_rows());
  this->made_heads(layer, "d_v", d_heads.v_rows());
  this->linear_backward(this->n(layer), w.qkv, qkv_, dn, g.qkv);
  this->made(layer, "d_norm", dn);
  this->norm_backward(this->x(layer), w.attention_norm, this->r(layer), dn, d, d, g.attention_norm);
}

template <class T>
void FusedPlan<T>::add_norm(Tensor<const T> x, Tensor<const T> branch, Tensor<const T> w,
                            Tensor<T> h, Tensor<T> y, Tensor<float> r) {
  launch(this->stream_, kernels::AddRmsNormForwardArgs<T>{.x = with_gaps(x),
                                                          .residual = with_gaps(branch),
                                                          .w = with_gaps(w),
                                                          .h = with_gaps(h),
                                                          .y = with_gaps(y),
                                                          .r = r,
                                                          .eps = this->norm_eps(),
                                                          .terms = x.cols});
}

template <class T>
void FusedPlan<T>::softmax(Tensor<T> scores) {
  launch(this->stream_,
         kernels::SoftmaxForwardArgs<T>{
             .x = scores, .y = scores, .scale = this->attention_scale(), .causal = true});
}

template <class T>
void FusedPlan<T>::softmax_backward(Tensor<T> weights, Tensor<T> d) {
  launch(this->stream_, kernels::SoftmaxBackwardArgs<T>{
                            .y = weights, .dy = d, .dx = d, .scale = this->attention_scale()});
}

template class FusedPlan<float>;
template class FusedPlan<bf16>;

}  // namespace cria
