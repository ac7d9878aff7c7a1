#include "plans/fused.h"

#include "kernels/launch.h"
#include "kernels/pointwise.h"
#include "kernels/rmsnorm.h"
#include "kernels/silu.h"
#include "kernels/softmax.h"
#include "plans/packed.h"

namespace cria {

template <class T>
void FusedPlan<T>::place(Arena& arena) {
  Plan<T>::place(arena);
  const ModelConfig& c = this->config();
  const int64_t scores = int64_t{this->rows()} * c.heads * this->setup_.seq;
  auto take = [&](int cols) { return this->take(arena, cols); };
  auto take_scores = [&] {
    return batch_of(arena.take<T>(scores), this->setup_.batch * c.heads, this->setup_.seq,
                    this->setup_.seq);
  };
  auto take_apart = [&](int heads) {
    return this->heads_apart(take(heads * c.head_dim).data, heads);
  };
  blocks_.assign(c.layers, {});
  for (Block& b : blocks_) {
    b.q_apart = take_apart(c.heads);
    b.k_apart = take_apart(c.kv_heads), b.v_apart = take_apart(c.kv_heads);
    b.weights = take_scores();
    b.o = take(c.query_width());
    b.h = take(c.dim), b.m = take(c.dim);
    b.r = matrix_of(arena.take<float>(this->rows()), this->rows(), 1);
    b.gate_up = take(2 * c.ffn), b.act = take(c.ffn);
  }
  branch_ = take(c.dim);
  qkv_ = take(c.qkv_width());
  o_apart_ = take_apart(c.heads), d_q_apart_ = take_apart(c.heads);
  d_k_apart_ = take_apart(c.kv_heads), d_v_apart_ = take_apart(c.kv_heads);
  d_o_ = take(c.query_width());
  d_scores_ = take_scores();
  d_act_ = take(c.ffn);
}

template <class T>
void FusedPlan<T>::block_forward(int layer) {
  const ModelConfig& c = this->config();
  const auto& w = this->setup_.weights.layers[layer];
  const Block& b = blocks_[layer];
  const PackedHeads<T> heads(c, this->setup_.batch, this->setup_.seq, qkv_);

  this->linear(this->n(layer), w.qkv, qkv_);
  this->made(layer, "v", heads.v_rows());
  this->rope(heads.q(), b.q_apart);
  this->rope(heads.k(), b.k_apart);
  copy_heads(heads.v(), b.v_apart);
  this->multiply_heads(Transposed::b, this->by_group(b.q_apart), b.k_apart,
                       this->by_group(b.weights));
  launch(this->stream_,
         kernels::SoftmaxForwardArgs<T>{
             .x = b.weights, .y = b.weights, .scale = this->attention_scale(), .causal = true});
  this->multiply_heads(Transposed::none, this->by_group(b.weights), b.v_apart,
                       this->by_group(o_apart_));
  copy_heads(o_apart_, this->heads_in_rows(b.o.data, c.heads, b.o.ld));
  this->made(layer, "attention", b.o);

  this->linear(b.o, w.o, branch_);
  add_norm(this->x(layer), branch_, w.ffn_norm, b.h, b.m, b.r);
  this->made(layer, "residual", b.h), this->made(layer, "ffn_norm", b.m);

  this->linear(b.m, w.gate_up, b.gate_up);
  const Halves<T> ffn(b.gate_up);
  launch(this->stream_, kernels::SiluUpForwardArgs<T>{.gate = ffn.gate, .up = ffn.up, .y = b.act});
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
  const Halves<T> ffn(b.gate_up);  // becomes its own gradient
  launch(this->stream_,
         kernels::SiluUpBackwardArgs<T>{
             .gate = ffn.gate, .up = ffn.up, .dy = d_act_, .dgate = ffn.gate, .dup = ffn.up});
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
  this->made(layer, "d_attention", d_o_);
  copy_heads(this->heads_in_rows(d_o_.data, c.heads, d_o_.ld), o_apart_);
  this->multiply_heads(Transposed::a, this->by_group(b.weights), this->by_group(o_apart_),
                       d_v_apart_);
  this->multiply_heads(Transposed::b, this->by_group(o_apart_), b.v_apart,
                       this->by_group(d_scores_));
  launch(this->stream_,
         kernels::SoftmaxBackwardArgs<T>{
             .y = b.weights, .dy = d_scores_, .dx = d_scores_, .scale = this->attention_scale()});
  this->multiply_heads(Transposed::none, this->by_group(d_scores_), b.k_apart,
                       this->by_group(d_q_apart_));
  this->multiply_heads(Transposed::a, this->by_group(d_scores_), this->by_group(b.q_apart),
                       d_k_apart_);

  const PackedHeads<T> d_heads(c, this->setup_.batch, this->setup_.seq, qkv_);
  this->rope_backward(d_q_apart_, d_heads.q());
  this->rope_backward(d_k_apart_, d_heads.k());
  copy_heads(d_v_apart_, d_heads.v());
  this->made(layer, "d_q", d_heads.q_rows()), this->made(layer, "d_k", d_heads.k_rows());
  this->made(layer, "d_v", d_heads.v_rows());
  this->linear_backward(this->n(layer), w.qkv, qkv_, dn, g.qkv);
  this->made(layer, "d_norm", dn);
  this->norm_backward(this->x(layer), w.attention_norm, this->r(layer), dn, d, d, g.attention_norm);
}

template <class T>
void FusedPlan<T>::add_norm(Tensor<const T> x, Tensor<const T> branch, Tensor<const T> w,
                            Tensor<T> h, Tensor<T> y, Tensor<float> r) {
  launch(this->stream_,
         kernels::AddRmsNormForwardArgs<T>{
             .x = x, .residual = branch, .w = w, .h = h, .y = y, .r = r, .eps = this->norm_eps()});
}

template <class T>
void FusedPlan<T>::copy_heads(Tensor<const T> x, Tensor<T> y) {
  launch(this->stream_, kernels::CopyHeadsArgs<T>{x, y});
}

template class FusedPlan<float>;
template class FusedPlan<bf16>;

}  // namespace cria
