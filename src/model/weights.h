// Where every weight of a model lies in one flat array, and typed views of it. Gradients, moments
// and copies in other precisions are arrays of the same layout. Names are Hugging Face's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/runs.h"
#include "base/tensor.h"
#include "model/config.h"

namespace cria {

struct WeightEntry {
  std::string name;
  std::vector<int64_t> shape;  // as files have it: one extent for the vectors of the norms
  int64_t offset;              // elements from the start of the array
  int rows, cols;              // of the operand: heads in them have their gaps
  int64_t ld;
  Runs runs;  // where the elements lie, from the offset on

  bool is_matrix() const { return shape.size() == 2; }
  int64_t size() const { return runs.size(); }  // elements, gaps not included
};

// Matrices come first, so that those with weight decay are one range; q, k, v of a layer follow
// each other, as do gate and up, so that a plan can multiply by them as one matrix. Rows lie at
// their pitch, matrices have whole gaps of rows behind them, and heads have theirs in either
// direction, so that every part begins at whole 16 bytes. All gaps hold zeros.
class WeightMap {
 public:
  explicit WeightMap(const ModelConfig& config);

  const std::vector<WeightEntry>& entries() const { return entries_; }
  const WeightEntry& find(const std::string& name) const;
  int64_t size() const { return size_; }          // elements, gaps included
  int64_t matrices() const { return matrices_; }  // elements before the first vector
  int64_t parameters() const;                     // elements, gaps not included

 private:
  // Rows or columns of a matrix: in one piece, or in heads.
  struct Extent {
    int parts, width;
    int laid_out;  // gaps between and behind heads included
    Extent(int size) : parts(1), width(size), laid_out(size) {}
    Extent(int heads, int width) : parts(heads), width(width), laid_out(heads * pitch_of(width)) {}
    int size() const { return parts * width; }
  };
  void add_matrix(const std::string& name, Extent rows, Extent cols);
  void add_vector(const std::string& name, int cols);
  void add(WeightEntry entry, int64_t elements);
  void align();

  std::vector<WeightEntry> entries_;
  int64_t size_ = 0;
  int64_t matrices_ = 0;
};

template <class T>
struct LayerWeights {
  Tensor<T> attention_norm;  // [D]
  Tensor<T> q;               // [HK, D]
  Tensor<T> k;               // [GK, D]
  Tensor<T> v;               // [GK, D]
  Tensor<T> qkv;             // the three as one, [(H + 2G)K, D]
  Tensor<T> o;               // [D, HK]
  Tensor<T> ffn_norm;        // [D]
  Tensor<T> gate;            // [F, D]
  Tensor<T> up;              // [F, D]
  Tensor<T> gate_up;         // the two and gate's gap as one, [2F, D]
  Tensor<T> down;            // [D, F]
};

template <class T>
struct Weights {
  Tensor<T> embedding;  // [V, D]
  std::vector<LayerWeights<T>> layers;
  Tensor<T> final_norm;  // [D]
  Tensor<T> head;        // [V, D], the embedding when tied
};

template <class T>
Weights<T> view_weights(const WeightMap& map, const ModelConfig& config, T* data) {
  auto at = [&](const std::string& name) {
    const WeightEntry& e = map.find(name);
    return matrix_of(data + e.offset, e.rows, e.cols, e.ld);
  };
  auto joined = [](Tensor<T> first, int rows) {
    return matrix_of(first.data, rows, first.cols, first.ld);
  };
  Weights<T> out;
  out.embedding = at("model.embed_tokens.weight");
  out.final_norm = at("model.norm.weight");
  out.head = config.tied ? out.embedding : at("lm_head.weight");
  for (int i = 0; i < config.layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    LayerWeights<T> w;
    w.attention_norm = at(layer + "input_layernorm.weight");
    w.q = at(layer + "self_attn.q_proj.weight");
    w.k = at(layer + "self_attn.k_proj.weight");
    w.v = at(layer + "self_attn.v_proj.weight");
    w.qkv = joined(w.q, config.qkv_width());
    w.o = at(layer + "self_attn.o_proj.weight");
    w.ffn_norm = at(layer + "post_attention_layernorm.weight");
    w.gate = at(layer + "mlp.gate_proj.weight");
    w.up = at(layer + "mlp.up_proj.weight");
    w.gate_up = joined(w.gate, config.gate_up_width());
    w.down = at(layer + "mlp.down_proj.weight");
    out.layers.push_back(w);
  }
  return out;
}

// Norms 1, everything else normal with this deviation; each tensor has random numbers of its own,
// so that a weight depends on its name's place, its place in the file's tensor and the seed only.
void init_weights(const WeightMap& map, uint64_t seed, std::span<float> data, float stddev = 0.02f);

// The part of the same from element `begin` of the array on, gaps included.
void init_part(const WeightMap& map, uint64_t seed, float stddev, int64_t begin,
               std::span<float> part);

// The model's rotary frequencies, stretched where its configuration says so.
std::vector<double> rope_frequencies(const ModelConfig& config);

}  // namespace cria
