#include "plans/baseline.h"

#include "kernels/launch.h"
#include "kernels/pointwise.h"
#include "kernels/silu.h"
#include "kernels/softmax.h"
#include "kernels/vector_add.h"

namespace cria {

template <class T>
void BaselinePlan<T>::place(Arena& arena) {
  ScoresPlan<T>::place(arena);
  const ModelConfig& c = this->config();
  auto take = [&](int cols) { return this->take(arena, cols); };
  blocks_.assign(c.layers, {});
  for (Block& b : blocks_) {
    b.q = take(c.query_width()), b.k = take(c.kv_width()), b.v = take(c.kv_width());
    b.apart = this->take_heads(arena);
    b.weights = this->take_scores(arena);
    b.o_apart = this->take_queries(arena), b.o = take(c.query_width());
    b.h = take(c.dim), b.m = take(c.dim);
    b.r = matrix_of(arena.take<float>(this->rows()), this->rows(), 1);
    b.gate = take(c.ffn), b.up = take(c.ffn), b.silu = take(c.ffn), b.act = take(c.ffn);
  }
  branch_ = take(c.dim);
  d_o_ = take(c.query_width()), d_q_ = take(c.query_width());
  d_k_ = take(c.kv_width()), d_v_ = take(c.kv_width());
  d_o_apart_ = this->take_queries(arena);
  d_apart_ = this->take_heads(arena);
  d_act_ = take(c.ffn), d_gate_ = take(c.ffn), d_up_ = take(c.ffn);
}

template <class T>
void BaselinePlan<T>::block_forward(int layer) {
  const ModelConfig& c = this->config();
  const auto& w = this->setup_.weights.layers[layer];
  const Block& b = blocks_[layer];

  this->linear(this->n(layer), w.q, b.q);
  this->linear(this->n(layer), w.k, b.k);
  this->linear(this->n(layer), w.v, b.v);
  const auto q = this->heads_in_rows(b.q, c.heads);
  const auto k = this->heads_in_rows(b.k, c.kv_heads);
  const auto v = this->heads_in_rows(b.v, c.kv_heads);
  this->rope(q, q);
  this->rope(k, k);
  this->made_heads(layer, "q", b.q), this->made_heads(layer, "k", b.k),
      this->made_heads(layer, "v", b.v);

  this->copy_heads(q, b.apart.q);
  this->copy_heads(k, b.apart.k);
  this->copy_heads(v, b.apart.v);
  this->attend(b.apart, b.weights, b.o_apart);
  this->copy_heads(b.o_apart, this->heads_in_rows(b.o, c.heads));
  this->made_heads(layer, "attention", b.o);

  this->linear(b.o, w.o, b.h);
  add(this->x(layer), b.h);
  this->made(layer, "residual", b.h);

  this->norm(b.h, w.ffn_norm, b.m, b.r);
  this->made(layer, "ffn_norm", b.m);
  this->linear(b.m, w.gate, b.gate);
  this->linear(b.m, w.up, b.up);
  launch(this->stream_,
         kernels::SiluForwardArgs<T>{.x = with_gaps(b.gate), .y = with_gaps(b.silu)});
  multiply_elements(b.silu, b.up, b.act);
  this->made(layer, "activation", b.act);
  this->linear(b.act, w.down, this->x(layer + 1));
  add(b.h, this->x(layer + 1));
  this->input_norm(layer + 1);
}

template <class T>
void BaselinePlan<T>::block_backward(int layer) {
  ffn_backward(layer);
  attention_backward(layer);
}

// x' = h + down(silu(gate) up), gate and up from m = norm(h)
template <class T>
void BaselinePlan<T>::ffn_backward(int layer) {
  const auto& w = this->setup_.weights.layers[layer];
  const auto& g = this->setup_.gradients.layers[layer];
  const Block& b = blocks_[layer];
  const Tensor<T> d = this->d_, dn = this->dn_;

  this->linear_backward(b.act, w.down, d, d_act_, g.down);
  this->made(layer, "d_activation", d_act_);
  multiply_elements(d_act_, b.silu, d_up_);
  multiply_elements(d_act_, b.up, d_gate_);
  launch(this->stream_,
         kernels::SiluBackwardArgs<T>{
             .x = with_gaps(b.gate), .dy = with_gaps(d_gate_), .dx = with_gaps(d_gate_)});
  this->linear_backward(b.m, w.gate, d_gate_, dn, g.gate);
  this->linear_backward(b.m, w.up, d_up_, branch_, g.up);
  add(branch_, dn);
  this->made(layer, "d_ffn_norm", dn);
  this->norm_backward(b.h, w.ffn_norm, b.r, dn, {}, dn, g.ffn_norm);
  add(dn, d);
  this->made(layer, "d_residual", d);
}

// h = x + o(softmax(scale q kᵀ) v), q, k and v from n = norm(x)
template <class T>
void BaselinePlan<T>::attention_backward(int layer) {
  const ModelConfig& c = this->config();
  const auto& w = this->setup_.weights.layers[layer];
  const auto& g = this->setup_.gradients.layers[layer];
  const Block& b = blocks_[layer];
  const Tensor<T> d = this->d_, dn = this->dn_;

  this->linear_backward(b.o, w.o, d, d_o_, g.o);
  this->made_heads(layer, "d_attention", d_o_);
  this->copy_heads(this->heads_in_rows(d_o_, c.heads), d_o_apart_);
  this->attend_backward(b.apart, b.weights, d_o_apart_, d_apart_);

  const auto d_q = this->heads_in_rows(d_q_, c.heads);
  const auto d_k = this->heads_in_rows(d_k_, c.kv_heads);
  this->copy_heads(d_apart_.q, d_q);
  this->copy_heads(d_apart_.k, d_k);
  this->copy_heads(d_apart_.v, this->heads_in_rows(d_v_, c.kv_heads));
  this->rope_backward(d_q, d_q);
  this->rope_backward(d_k, d_k);
  this->made_heads(layer, "d_q", d_q_), this->made_heads(layer, "d_k", d_k_),
      this->made_heads(layer, "d_v", d_v_);

  this->linear_backward(this->n(layer), w.q, d_q_, dn, g.q);
  this->linear_backward(this->n(layer), w.k, d_k_, branch_, g.k);
  add(branch_, dn);
  this->linear_backward(this->n(layer), w.v, d_v_, branch_, g.v);
  add(branch_, dn);
  this->made(layer, "d_norm", dn);
  this->norm_backward(this->x(layer), w.attention_norm, this->r(layer), dn, {}, dn,
                      g.attention_norm);
  add(dn, d);
}

template <class T>
void BaselinePlan<T>::add(Tensor<const T> x, Tensor<T> y) {
  const int n = static_cast<int>(y.rows * y.ld);  // gaps add up to zeros
  launch(this->stream_,
         kernels::VectorAddArgs<T>{vector_of(x.data, n), vector_of<const T>(y.data, n),
                                   vector_of(y.data, n)});
}

template <class T>
void BaselinePlan<T>::multiply_elements(Tensor<const T> x, Tensor<const T> y, Tensor<T> z) {
  launch(this->stream_, kernels::MultiplyArgs<T>{with_gaps(x), with_gaps(y), with_gaps(z)});
}

template <class T>
void BaselinePlan<T>::scale(Tensor<T> x, float factor) {
  const int count = static_cast<int>(x.batch * (x.batch_stride / x.ld));
  const Tensor<T> rows = matrix_of(x.data, count, static_cast<int>(x.ld), x.ld);
  launch(this->stream_, kernels::ScaleArgs<T>{.x = rows, .y = rows, .factor = factor});
}

template <class T>
void BaselinePlan<T>::softmax(Tensor<T> scores) {
  scale(scores, this->attention_scale());
  launch(this->stream_, kernels::CausalMaskArgs<T>{scores});
  launch(this->stream_, kernels::SoftmaxForwardArgs<T>{.x = scores, .y = scores});
}

template <class T>
void BaselinePlan<T>::softmax_backward(Tensor<T> weights, Tensor<T> d) {
  launch(this->stream_, kernels::SoftmaxBackwardArgs<T>{.y = weights, .dy = d, .dx = d});
  scale(d, this->attention_scale());
}

template class BaselinePlan<float>;
template class BaselinePlan<bf16>;

}  // namespace cria
