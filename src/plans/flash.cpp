#include "plans/flash.h"

#include <utility>

#include "kernels/attention.h"
#include "kernels/gate_up.h"
#include "kernels/gate_up_backward.h"
#include "kernels/launch.h"
#include "kernels/qkv.h"
#include "kernels/silu.h"
#include "plans/packed.h"

namespace cria {

template <class T>
void FlashPlan<T>::place(Arena& arena) {
  Plan<T>::place(arena);
  const ModelConfig& c = this->config();
  auto take = [&](int cols) { return this->take(arena, cols); };
  auto take_row_values = [&] {
    const int heads = this->setup_.batch * c.heads, seq = this->setup_.seq;
    return pitched_matrix(arena.take<float>(heads * pitch_of(int64_t{seq})), heads, seq);
  };
  blocks_.assign(c.layers, {});
  for (Block& b : blocks_) {
    const Block& first = blocks_[0];
    const bool keeps = &b == &first || !this->setup_.recompute;
    b.qkv = take(c.qkv_width());
    b.lse = take_row_values();
    b.o = take(c.query_width());
    b.h = take(c.dim);
    b.r = matrix_of(arena.take<float>(this->rows()), this->rows(), 1);
    b.gate_up = keeps ? take(c.gate_up_width()) : first.gate_up;
    b.act = &b == &first || (keeps && gate_up_choice().own) ? take(c.ffn) : first.act;
  }
  const bool gaps = c.dim != pitch_of(c.dim) || c.head_dim != c.head_pitch();
  own_n_ = gaps || c.query_width() < c.dim ? take(c.dim) : Tensor<T>{};
  d_qkv_ = take(c.qkv_width());
  own_d_o_ = gaps || c.query_width() > c.dim ? take(c.query_width()) : Tensor<T>{};
  d_h_ = take(c.dim);
  delta_ = take_row_values();
  const int kv_heads = this->setup_.batch * c.kv_heads, again = attention_gradients(0).seen_again();
  so_far_ = pitched_batch<float>(nullptr, 2 * kv_heads, again, c.head_pitch());
  one_pass_ = suits(this->stream_.device(), call_of(attention_gradients(0)));
  if (one_pass_) so_far_.data = arena.take<float>(so_far_.batch * so_far_.batch_stride);
}

template <class T>
void FlashPlan<T>::block_forward(int layer) {
  const ModelConfig& c = this->config();
  const auto& w = this->setup_.weights.layers[layer];
  const Block& b = blocks_[layer];
  const PackedHeads<T> heads(c, this->setup_.batch, this->setup_.seq, b.qkv);

  if (this->own(Stage::qkv, {this->rows(), c.qkv_width(), pitch_of(c.dim)})) {
    launch(this->stream_, kernels::QkvArgs<T>{.x = with_gaps(this->n(layer)),
                                              .w = with_gaps(w.qkv),
                                              .y = b.qkv,
                                              .cos = this->setup_.rope.cos,
                                              .sin = this->setup_.rope.sin,
                                              .head_dim = c.head_dim,
                                              .turned = c.query_width() + c.kv_width(),
                                              .seq = this->setup_.seq});
  } else {
    this->linear(this->n(layer), w.qkv, b.qkv);
    this->rope(heads.q_and_k(), heads.q_and_k());
  }
  this->made_heads(layer, "q", heads.q_rows()), this->made_heads(layer, "k", heads.k_rows());
  this->made_heads(layer, "v", heads.v_rows());
  launch(this->stream_, kernels::AttentionForwardArgs<T>{.q = with_gaps(heads.q()),
                                                         .k = with_gaps(heads.k()),
                                                         .v = with_gaps(heads.v()),
                                                         .o = this->whole_heads(b.o, c.heads),
                                                         .lse = b.lse,
                                                         .scale = this->attention_scale(),
                                                         .precision = this->dot_precision()});
  this->made_heads(layer, "attention", b.o);
  this->linear(b.o, w.o, b.h, this->x(layer));
  this->made(layer, "residual", b.h);

  this->norm(b.h, w.ffn_norm, m(layer), b.r);
  this->made(layer, "ffn_norm", m(layer));
  activate(layer, !this->setup_.recompute);
  this->made(layer, "activation", b.act);
  this->linear(b.act, w.down, this->x(layer + 1), b.h);
  this->input_norm(layer + 1);
}

template <class T>
void FlashPlan<T>::activate(int layer, bool keep) {
  const auto& w = this->setup_.weights.layers[layer];
  const Block& b = blocks_[layer];
  const Halves<T> ffn(b.gate_up, this->config().ffn);
  if (own_gate_up()) {
    kernels::GateUpArgs<T> args{.x = with_gaps(m(layer)),
                                .gate = whole_weight(w.gate),
                                .up = whole_weight(w.up),
                                .y = with_gaps(b.act)};
    if (keep) args.by_gate = with_gaps(ffn.gate), args.by_up = with_gaps(ffn.up);
    launch(this->stream_, args);
  } else {
    this->linear(m(layer), w.gate_up, b.gate_up);
    launch(this->stream_,
           kernels::SiluUpForwardArgs<T>{
               .gate = with_gaps(ffn.gate), .up = with_gaps(ffn.up), .y = with_gaps(b.act)});
  }
}

template <class T>
void FlashPlan<T>::block_backward(int layer) {
  group_ = {}, grouped_ = 0;
  ffn_backward(layer);
  attention_backward(layer);
  const auto& g = this->setup_.gradients.layers[layer];
  const Block& b = blocks_[layer];
  weight_gradient(this->d_, b.act, g.down);
  weight_gradient(b.gate_up, m(layer), g.gate_up);
  if (grouped_ > 0) launch(this->stream_, group_);
  std::swap(this->d_, this->dn_);  // attention's part has left the gradient of x in dn_
}

// x' = h + down(silu(gate) up), gate and up from m = norm(h)
template <class T>
void FlashPlan<T>::ffn_backward(int layer) {
  const auto& w = this->setup_.weights.layers[layer];
  const auto& g = this->setup_.gradients.layers[layer];
  const Block& b = blocks_[layer];
  const Tensor<T> d = this->d_, dn = this->dn_, act = b.act;

  const bool recompute = this->setup_.recompute;
  if (recompute) this->norm(b.h, w.ffn_norm, m(layer), b.r);
  const Halves<T> ffn(b.gate_up, this->config().ffn);  // becomes the gradient of gate and up
  if (own_gate_up()) {
    if (recompute) activate(layer, true);
    launch(this->stream_, kernels::GateUpBackwardArgs<T>{.dy = with_gaps(d),
                                                         .down = whole_weight(w.down),
                                                         .by_gate = with_gaps(ffn.gate),
                                                         .by_up = with_gaps(ffn.up),
                                                         .dgate = with_gaps(ffn.gate),
                                                         .dup = with_gaps(ffn.up)});
  } else {
    if (recompute) this->linear(m(layer), w.gate_up, b.gate_up);
    this->linear_dx(d, w.down, act);
    this->made(layer, "d_activation", act);
    launch(this->stream_, kernels::SiluUpBackwardArgs<T>{.gate = with_gaps(ffn.gate),
                                                         .up = with_gaps(ffn.up),
                                                         .dy = with_gaps(act),
                                                         .dgate = with_gaps(ffn.gate),
                                                         .dup = with_gaps(ffn.up),
                                                         .y = with_gaps(act)});
  }
  this->linear_dx(b.gate_up, w.gate_up, dn);
  this->made(layer, "d_ffn_norm", dn);
  this->norm_backward(b.h, w.ffn_norm, b.r, dn, d, d_h_, g.ffn_norm, m(layer));
  this->made(layer, "d_residual", d_h_);
}

// h = x + o(softmax(scale q kᵀ) v), q, k and v from n = norm(x)
template <class T>
void FlashPlan<T>::attention_backward(int layer) {
  const ModelConfig& c = this->config();
  const auto& w = this->setup_.weights.layers[layer];
  const auto& g = this->setup_.gradients.layers[layer];
  const Block& b = blocks_[layer];
  const Tensor<T> dn = this->dn_;
  const PackedHeads<T> d_heads(c, this->setup_.batch, this->setup_.seq, d_qkv_);

  this->linear_dx(d_h_, w.o, d_o());
  this->made_heads(layer, "d_attention", d_o());
  weight_gradient(d_h_, b.o, g.o);
  const auto all = attention_gradients(layer);
  if (one_pass_) {
    launch(this->stream_, all);
  } else {
    launch(this->stream_, kernels::AttentionBackwardQArgs<T>{all, all.o, all.dq, delta_});
    launch(this->stream_, kernels::AttentionBackwardKvArgs<T>{all, delta_, all.dk, all.dv});
  }
  if (!turns_gradients()) this->rope_backward(d_heads.q_and_k(), d_heads.q_and_k());
  this->made_heads(layer, "d_q", d_heads.q_rows()),
      this->made_heads(layer, "d_k", d_heads.k_rows());
  this->made_heads(layer, "d_v", d_heads.v_rows());

  this->linear_dx(d_qkv_, w.qkv, dn);
  this->made(layer, "d_norm", dn);
  this->norm_backward(this->x(layer), w.attention_norm, this->r(layer), dn, d_h_, dn,
                      g.attention_norm, n_again(layer));
  weight_gradient(d_qkv_, n_again(layer), g.qkv);
}

template <class T>
kernels::AttentionBackwardQkvArgs<T> FlashPlan<T>::attention_gradients(int layer) const {
  const ModelConfig& c = this->config();
  const Block& b = blocks_[layer];
  const PackedHeads<T> heads(c, this->setup_.batch, this->setup_.seq, b.qkv);
  const PackedHeads<T> d_heads(c, this->setup_.batch, this->setup_.seq, d_qkv_);
  kernels::AttentionBackwardInputs<T> inputs{.q = with_gaps(heads.q()),
                                             .k = with_gaps(heads.k()),
                                             .v = with_gaps(heads.v()),
                                             .dout = this->whole_heads(d_o(), c.heads),
                                             .lse = b.lse,
                                             .scale = this->attention_scale(),
                                             .precision = this->dot_precision()};
  if (turns_gradients()) inputs.cos = this->setup_.rope.cos, inputs.sin = this->setup_.rope.sin;
  return {inputs,
          this->whole_heads(b.o, c.heads),
          with_gaps(d_heads.q()),
          with_gaps(d_heads.k()),
          with_gaps(d_heads.v()),
          delta_,
          so_far_};
}

template <class T>
void FlashPlan<T>::weight_gradient(Tensor<const T> dy, Tensor<const T> x, Tensor<T> dw) {
  const ModelConfig& c = this->config();
  const int64_t dim = pitch_of(c.dim);  // all of a block's weights have it as one of their sides
  const int64_t others = c.qkv_width() + c.query_width() + c.gate_up_width() + pitch_of(c.ffn);
  if (own(Stage::weight_gradients, {others, dim, this->rows()})) {
    require(grouped_ < kernels::kGemmParts, "a block has more weights than a launch takes");
    group_.parts[grouped_++] = {with_gaps(dy), with_gaps(x), whole_weight(dw)};
  } else {
    this->linear_dw(x, dy, dw);
  }
}

template <class T>
bool FlashPlan<T>::own(Stage stage, StageSizes sizes) {
  const Choice choice = chooser_.choose(stage, sizes);
  this->note(choice);
  return choice.own;
}

template class FlashPlan<float>;
template class FlashPlan<bf16>;

}  // namespace cria
