// Views into the results of joined products: q, k and v in one row, gate and up in one row.
#pragma once

#include "base/tensor.h"
#include "model/config.h"

namespace cria {

// Rows of [q | k | v], as matrices and as heads [B, T, heads, K].
template <class T>
class PackedHeads {
 public:
  PackedHeads(const ModelConfig& config, int batch, int seq, Tensor<T> qkv)
      : config_(config), batch_(batch), seq_(seq), qkv_(qkv) {}

  Tensor<T> q() const { return heads(0, config_.heads); }
  Tensor<T> k() const { return heads(config_.query_width(), config_.kv_heads); }
  Tensor<T> v() const {
    return heads(config_.query_width() + config_.kv_width(), config_.kv_heads);
  }
  // q and k are neighbours: what turns one can turn both at once.
  Tensor<T> q_and_k() const { return heads(0, config_.heads + config_.kv_heads); }

  Tensor<T> q_rows() const { return rows(0, config_.query_width()); }
  Tensor<T> k_rows() const { return rows(config_.query_width(), config_.kv_width()); }
  Tensor<T> v_rows() const {
    return rows(config_.query_width() + config_.kv_width(), config_.kv_width());
  }

 private:
  Tensor<T> heads(int column, int count) const {
    return heads_of(qkv_.data + column, batch_, seq_, count, config_.head_dim, qkv_.ld,
                    config_.head_pitch());
  }
  Tensor<T> rows(int column, int width) const {
    return matrix_of(qkv_.data + column, qkv_.rows, width, qkv_.ld);
  }

  const ModelConfig& config_;
  int batch_, seq_;
  Tensor<T> qkv_;
};

// Rows of [gate | up], each of `ffn` columns and the gap behind them.
template <class T>
struct Halves {
  Tensor<T> gate, up;

  Halves(Tensor<T> both, int ffn)
      : gate(matrix_of(both.data, both.rows, ffn, both.ld)),
        up(matrix_of(both.data + both.cols / 2, both.rows, ffn, both.ld)) {}
};

}  // namespace cria
