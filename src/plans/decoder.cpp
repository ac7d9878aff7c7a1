#include "plans/decoder.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "kernels/attention.h"
#include "kernels/attention_decode.h"
#include "kernels/embedding.h"
#include "kernels/gemv.h"
#include "kernels/launch.h"
#include "kernels/rmsnorm.h"
#include "kernels/rope.h"
#include "kernels/shares.h"
#include "kernels/silu.h"
#include "plans/packed.h"
#include "plans/products.h"
#include "plans/rope_tables.h"
#include "runtime/arena.h"
#include "runtime/buffer.h"

namespace cria {
namespace {

constexpr int kChunk = 256;  // tokens of a prompt taken at once
constexpr int kFewRows = 8;  // up to here a product reads its weight as GemvArgs does

template <class T>
class DecoderOf final : public Decoder {
 public:
  DecoderOf(const DecoderOptions& options, const WeightMap& map, const FillWeights& fill);

  std::vector<float> feed(std::span<const int32_t> tokens) override { return take(tokens, false); }
  std::vector<float> feed_all(std::span<const int32_t> tokens) override {
    return take(tokens, true);
  }
  void rewind(int length) override;
  int length() const override { return length_; }
  int capacity() const override { return capacity_; }
  Stream& stream() override { return stream_; }

 private:
  std::vector<float> take(std::span<const int32_t> tokens, bool all);
  void load(int64_t count, const FillWeights& fill);
  void place();
  void run_chunk(std::span<const int32_t> tokens);
  void run_block(int layer, int count);
  void attend(int layer, int count);
  void linear(Tensor<const T> x, Tensor<const T> w, Tensor<T> y, Tensor<const T> residual = {});
  void norm(Tensor<const T> x, Tensor<const T> w, Tensor<T> y);
  // The logits after row `from` of the last chunk and on.
  void read_logits(int from, int count, std::vector<float>& out);

  // Heads of width K inside rows.
  Tensor<T> heads(T* data, int rows, int count, int64_t ld) const {
    return heads_of(data, 1, rows, count, config_.head_dim, ld, config_.head_pitch());
  }
  // The rows of a cache from token `from` on.
  Tensor<T> cached_rows(const std::vector<T*>& cache, int layer, int from, int rows) const {
    const int width = config_.kv_width();
    return matrix_of(cache[layer] + int64_t{from} * width, rows, width);
  }
  // Heads of the first `rows` tokens in a cache.
  Tensor<T> cached(const std::vector<T*>& cache, int layer, int rows) const {
    return heads(cache[layer], rows, config_.kv_heads, config_.kv_width());
  }
  // One row of heads as matrices of those that share keys: [G, H/G, K].
  Tensor<T> by_group(T* row) const {
    const int sharing = config_.heads / config_.kv_heads, pitch = config_.head_pitch();
    return {row, config_.kv_heads, sharing, config_.head_dim, pitch, int64_t{sharing} * pitch};
  }
  static Tensor<T> first_rows(Tensor<T> t, int rows) {
    return matrix_of(t.data, rows, t.cols, t.ld);
  }

  const ModelConfig config_;
  const int capacity_;
  Stream stream_;
  Buffer weights_data_, rope_, tokens_;
  Weights<const T> weights_;
  RopeTables turns_;
  Arena arena_;
  std::vector<T*> keys_, values_;  // per layer [capacity, G K]
  Tensor<T> x_, n_;                // [chunk, D]
  Tensor<T> q_k_;                  // [chunk, (H + G) K]
  Tensor<T> o_;                    // [chunk, H K]
  Tensor<T> gate_up_;              // [chunk, 2F]
  Tensor<T> act_;                  // [chunk, F]
  Tensor<T> logits_;               // [few, V]
  Tensor<float> parts_, logs_;     // of AttentionDecodeArgs
  int length_ = 0;
};

template <class T>
DecoderOf<T>::DecoderOf(const DecoderOptions& o, const WeightMap& map, const FillWeights& fill)
    : config_(o.model),
      capacity_(o.capacity > 0 ? o.capacity : o.model.context),
      stream_(o.device),
      weights_data_(o.device, map.size() * sizeof(T)),
      rope_(o.device, 0),
      tokens_(o.device, kChunk * sizeof(int32_t)),
      arena_(o.device) {
  load(map.size(), fill);
  weights_ = view_weights(map, config_, static_cast<const T*>(weights_data_.as<T>()));

  turns_ = upload_rope_tables(rope_frequencies(config_), capacity_, rope_);

  place();
  arena_.commit();
  if (has_gaps(config_)) arena_.clear();
  place();
}

template <class T>
void DecoderOf<T>::load(int64_t count, const FillWeights& fill) {
  if constexpr (std::is_same_v<T, float>)
    if (weights_data_.device().backend == Backend::cpu) {
      weights_data_.fill_bytes(0);
      return fill({weights_data_.as<float>(), size_t(count)});
    }
  std::vector<float> weights(count);
  fill(weights);
  if constexpr (std::is_same_v<T, float>) {
    weights_data_.copy_from_host(weights.data(), weights.size() * sizeof(float));
  } else {
    std::vector<T> rounded(weights.size());
    for (size_t i = 0; i < weights.size(); ++i) rounded[i] = from_float<T>(weights[i]);
    weights_data_.copy_from_host(rounded.data(), rounded.size() * sizeof(T));
  }
}

template <class T>
void DecoderOf<T>::place() {
  const ModelConfig& c = config_;
  auto rows = [&](int count, int cols) {
    return pitched_matrix(arena_.take<T>(count * pitch_of(int64_t{cols})), count, cols);
  };
  keys_.clear(), values_.clear();
  for (int i = 0; i < c.layers; ++i) {
    keys_.push_back(arena_.take<T>(int64_t{capacity_} * c.kv_width()));
    values_.push_back(arena_.take<T>(int64_t{capacity_} * c.kv_width()));
  }
  x_ = rows(kChunk, c.dim), n_ = rows(kChunk, c.dim);
  q_k_ = rows(kChunk, c.query_width() + c.kv_width());
  o_ = rows(kChunk, c.query_width());
  gate_up_ = rows(kChunk, c.gate_up_width()), act_ = rows(kChunk, c.ffn);
  logits_ = rows(kFewRows, c.vocab);
  const int parts = kernels::decode_parts(stream_.device(), c.kv_heads, capacity_);
  const int part_rows = parts * (c.heads / c.kv_heads);
  parts_ = pitched_batch<float>(nullptr, c.kv_heads, part_rows, c.head_dim);
  parts_.data = arena_.take<float>(parts_.batch * parts_.batch_stride);
  logs_ = matrix_of(arena_.take<float>(int64_t{c.kv_heads} * part_rows), c.kv_heads, part_rows);
}

template <class T>
void DecoderOf<T>::rewind(int length) {
  if (length < 0 || length > length_)
    fail_f("cannot rewind to {} tokens: {} were taken", length, length_);
  length_ = length;
}

template <class T>
std::vector<float> DecoderOf<T>::take(std::span<const int32_t> tokens, bool all) {
  if (tokens.empty()) fail("there are no tokens to decode: give at least one");
  if (length_ + std::ssize(tokens) > capacity_)
    fail_f(
        "the cache holds {} tokens, and {} + {} are wanted: make it longer, or the prompt shorter",
        capacity_, length_, tokens.size());
  for (const int32_t token : tokens)
    if (token < 0 || token >= config_.vocab)
      fail_f("token {} is outside the model's vocabulary of {}", token, config_.vocab);
  std::vector<float> out;
  while (!tokens.empty()) {
    const auto chunk = tokens.first(std::min<size_t>(kChunk, tokens.size()));
    const int count = static_cast<int>(chunk.size());
    run_chunk(chunk);
    length_ += count;
    tokens = tokens.subspan(chunk.size());
    if (all)
      read_logits(0, count, out);
    else if (tokens.empty())
      read_logits(count - 1, 1, out);
  }
  return out;
}

template <class T>
void DecoderOf<T>::run_chunk(std::span<const int32_t> tokens) {
  const int count = static_cast<int>(tokens.size());
  stream_.copy(tokens_.as<int32_t>(), tokens.data(), tokens.size_bytes());
  launch(stream_, kernels::EmbeddingForwardArgs<T>{
                      .tokens = vector_of<const int32_t>(tokens_.as<int32_t>(), count),
                      .table = weights_.embedding,
                      .y = first_rows(x_, count)});
  for (int i = 0; i < config_.layers; ++i) run_block(i, count);
}

template <class T>
void DecoderOf<T>::run_block(int layer, int count) {
  const ModelConfig& c = config_;
  const LayerWeights<const T>& w = weights_.layers[layer];
  const Tensor<T> x = first_rows(x_, count), n = first_rows(n_, count), o = first_rows(o_, count);
  const Tensor<T> q_k = first_rows(q_k_, count);

  norm(x, w.attention_norm, n);
  linear(n, matrix_of(w.q.data, q_k.cols, c.dim, w.q.ld), q_k);
  linear(n, w.v, cached_rows(values_, layer, length_, count));
  auto turn = [&](Tensor<T> from, Tensor<T> to) {
    launch(stream_,
           kernels::RopeForwardArgs<T>{
               .x = from, .cos = turns_.cos, .sin = turns_.sin, .y = to, .offset = length_});
  };
  const Tensor<T> q = heads(q_k.data, count, c.heads, q_k.ld);
  turn(q, q);
  turn(heads(q_k.data + c.query_width(), count, c.kv_heads, q_k.ld),
       heads(cached_rows(keys_, layer, length_, count).data, count, c.kv_heads, c.kv_width()));
  attend(layer, count);
  linear(o, w.o, x, x);

  norm(x, w.ffn_norm, n);
  const Tensor<T> gate_up = first_rows(gate_up_, count), act = first_rows(act_, count);
  linear(n, w.gate_up, gate_up);
  const Halves<T> ffn(gate_up, c.ffn);
  launch(stream_, kernels::SiluUpForwardArgs<T>{.gate = ffn.gate, .up = ffn.up, .y = act});
  linear(act, w.down, x, x);
}

template <class T>
void DecoderOf<T>::attend(int layer, int count) {
  const ModelConfig& c = config_;
  const int keys = length_ + count;
  const float scale = 1.f / std::sqrt(static_cast<float>(c.head_dim));
  const Tensor<T> k = cached(keys_, layer, keys), v = cached(values_, layer, keys);
  if (count > 1) {
    launch(stream_, kernels::AttentionForwardArgs<T>{.q = heads(q_k_.data, count, c.heads, q_k_.ld),
                                                     .k = k,
                                                     .v = v,
                                                     .o = heads(o_.data, count, c.heads, o_.ld),
                                                     .scale = scale});
    return;
  }
  const kernels::AttentionDecodeArgs<T> args{.q = by_group(q_k_.data),
                                             .k = k,
                                             .v = v,
                                             .o = by_group(o_.data),
                                             .parts = parts_,
                                             .logs = logs_,
                                             .scale = scale,
                                             .length = keys};
  launch(stream_, args);
  if (args.part_count() > 1) launch(stream_, args.combine());
}

template <class T>
void DecoderOf<T>::linear(Tensor<const T> x, Tensor<const T> w, Tensor<T> y,
                          Tensor<const T> residual) {
  if (x.rows <= kFewRows)
    launch(stream_, kernels::GemvArgs<T>{.x = x, .w = w, .y = y, .residual = residual});
  else
    cria::linear(stream_, Precision::full, x, w, y, residual);
}

template <class T>
void DecoderOf<T>::norm(Tensor<const T> x, Tensor<const T> w, Tensor<T> y) {
  launch(stream_, kernels::RmsNormForwardArgs<T>{
                      .x = x, .w = w, .y = y, .eps = static_cast<float>(config_.norm_eps)});
}

template <class T>
void DecoderOf<T>::read_logits(int from, int count, std::vector<float>& out) {
  std::vector<T> row(config_.vocab);
  for (int start = from; start < from + count; start += kFewRows) {
    const int rows = std::min(kFewRows, from + count - start);
    const Tensor<T> x = matrix_of(x_.row(start), rows, x_.cols, x_.ld);
    const Tensor<T> n = first_rows(n_, rows), logits = first_rows(logits_, rows);
    norm(x, weights_.final_norm, n);
    linear(n, weights_.head, logits);
    for (int r = 0; r < rows; ++r) {
      stream_.copy(row.data(), logits.row(r), row.size() * sizeof(T));
      stream_.synchronize();
      for (const T value : row) out.push_back(to_float(value));
    }
  }
}

}  // namespace

std::unique_ptr<Decoder> make_decoder(const DecoderOptions& options, const WeightMap& map,
                                      const FillWeights& fill) {
  switch (options.dtype) {
    case DType::f32:
      return std::make_unique<DecoderOf<float>>(options, map, fill);
    case DType::bf16:
      return std::make_unique<DecoderOf<bf16>>(options, map, fill);
    default:
      fail_f("cria decodes in f32 or bf16, not {}", name_of(options.dtype));
  }
}

}  // namespace cria
