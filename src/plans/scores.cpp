#include "plans/scores.h"

#include "kernels/launch.h"
#include "kernels/pointwise.h"

namespace cria {

template <class T>
void ScoresPlan<T>::place(Arena& arena) {
  Plan<T>::place(arena);
  d_scores_ = take_scores(arena);
}

template <class T>
typename ScoresPlan<T>::Heads ScoresPlan<T>::take_heads(Arena& arena) const {
  const ModelConfig& c = this->config();
  Heads heads;
  heads.q = take_queries(arena);
  heads.k = take_apart(arena, c.kv_heads, c.head_dim);
  heads.v = take_apart(arena, c.kv_heads, c.head_dim);
  return heads;
}

template <class T>
Tensor<T> ScoresPlan<T>::take_apart(Arena& arena, int heads, int cols) const {
  Tensor<T> t = pitched_batch<T>(nullptr, this->setup_.batch * heads, this->setup_.seq, cols);
  t.data = arena.take<T>(t.batch * t.batch_stride);
  return t;
}

template <class T>
Tensor<T> ScoresPlan<T>::take_queries(Arena& arena) const {
  return take_apart(arena, this->config().heads, this->config().head_dim);
}

template <class T>
Tensor<T> ScoresPlan<T>::take_scores(Arena& arena) const {
  return take_apart(arena, this->config().heads, this->setup_.seq);
}

template <class T>
void ScoresPlan<T>::copy_heads(Tensor<const T> x, Tensor<T> y) {
  launch(this->stream_, kernels::CopyHeadsArgs<T>{with_gaps(x), with_gaps(y)});
}

template <class T>
void ScoresPlan<T>::attend(const Heads& heads, Tensor<T> weights, Tensor<T> o) {
  multiply_groups(Transposed::b, by_group(heads.q), heads.k, by_group(weights));
  softmax(weights);
  multiply_groups(Transposed::none, by_group(weights), heads.v, by_group(o));
}

template <class T>
void ScoresPlan<T>::attend_backward(const Heads& heads, Tensor<T> weights, Tensor<T> d_o,
                                    const Heads& d) {
  multiply_groups(Transposed::a, by_group(weights), by_group(d_o), d.v);
  multiply_groups(Transposed::b, by_group(d_o), heads.v, by_group(d_scores_));
  softmax_backward(weights, d_scores_);
  multiply_groups(Transposed::none, by_group(d_scores_), heads.k, by_group(d.q));
  multiply_groups(Transposed::a, by_group(d_scores_), by_group(heads.q), d.k);
}

template <class T>
Tensor<T> ScoresPlan<T>::by_group(Tensor<T> apart) const {
  const int per_group = this->config().heads / this->config().kv_heads;
  const int rows = per_group * pitch_of(apart.rows);
  return {apart.data, apart.batch / per_group,       rows, static_cast<int>(apart.ld),
          apart.ld,   per_group * apart.batch_stride};
}

template <class T>
void ScoresPlan<T>::multiply_groups(Transposed transposed, Tensor<const T> a, Tensor<const T> b,
                                    Tensor<T> c) {
  multiply(this->stream_, this->setup_.precision, transposed, a, b, c);
}

template class ScoresPlan<float>;
template class ScoresPlan<bf16>;

}  // namespace cria
