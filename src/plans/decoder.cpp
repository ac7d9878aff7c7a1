#include "plans/decoder.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/format.h"
#include "kernels/attention.h"
#include "kernels/attention_decode.h"
#include "kernels/embedding.h"
#include "kernels/gemv.h"
#include "kernels/launch.h"
#include "kernels/place_qkv.h"
#include "kernels/rmsnorm.h"
#include "kernels/rope.h"
#include "kernels/shares.h"
#include "kernels/silu.h"
#include "plans/packed.h"
#include "plans/products.h"
#include "plans/rope_tables.h"
#include "runtime/arena.h"
#include "runtime/buffer.h"
#include "runtime/event.h"
#include "runtime/graph.h"
#include "runtime/host_buffer.h"

namespace cria {
namespace {

constexpr int kChunk = 256;  // tokens of a prompt taken at once
constexpr int kFewRows = 8;  // up to here a product reads its weight as GemvArgs does

template <class T>
class DecoderOf final : public Decoder {
 public:
  DecoderOf(const DecoderOptions& options, const WeightMap& map, const FillWeights& fill);

  std::span<const float> feed(std::span<const int32_t> tokens) override;
  std::vector<float> feed_all(std::span<const int32_t> tokens) override;
  void rewind(int length) override;
  double device_us() const override { return elapsed_us(start_, end_); }
  int length() const override { return length_; }
  int capacity() const override { return capacity_; }
  Stream& stream() override { return stream_; }

 private:
  void check(std::span<const int32_t> tokens) const;
  // The logits after the last tokens, as many as there is room for.
  void take(std::span<const int32_t> tokens, std::span<float> logits);
  void load(int64_t count, const FillWeights& fill);
  void place();
  // Several tokens, up to the last layer.
  void run_chunk(std::span<const int32_t> tokens);
  void attend_chunk(int layer, int count);
  // One token and its logits.
  void run_token(int32_t token);
  void launch_token(int most_keys);
  void attend_token(int layer, int most_keys);
  void embed(Tensor<const int32_t> tokens);
  void feed_forward(int layer, int count);
  void linear(Tensor<const T> x, Tensor<const T> w, Tensor<T> y, Tensor<const T> residual = {});
  void norm(Tensor<const T> x, Tensor<const T> w, Tensor<T> y);
  // The logits after a few rows of x, to host memory; and from there, once they have arrived.
  void send_logits(Tensor<const T> x);
  void receive_logits(std::span<float> out);
  float score_scale() const { return 1.f / std::sqrt(static_cast<float>(config_.head_dim)); }

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
  // Heads of one row, from a column on: [count, K].
  Tensor<T> heads_at(T* row, int column, int count) const {
    return matrix_of(row + column, count, config_.head_dim, config_.head_pitch());
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
  Buffer next_;           // a token and its position
  HostBuffer next_here_;  // the same, to be sent
  Weights<const T> weights_;
  RopeTables turns_;
  Arena arena_;
  std::vector<T*> keys_, values_;  // per layer [capacity, G K]
  Tensor<T> x_, n_;                // [chunk, D]
  Tensor<T> q_k_;                  // [chunk, (H + G) K]
  Tensor<T> qkv_;                  // [1, (H + 2G) K]
  Tensor<T> o_;                    // [chunk, H K]
  Tensor<T> gate_up_;              // [chunk, 2F]
  Tensor<T> act_;                  // [chunk, F]
  Tensor<T> logits_;               // [few, V]
  Tensor<float> parts_, logs_;     // of AttentionDecodeArgs
  HostBuffer logits_here_;         // T, laid out like them
  std::vector<float> last_;        // [V], what feed gives
  std::optional<Graph> graph_;     // of launch_token
  bool warm_ = false;              // a token has run without it
  Event start_, end_;              // of the last call's work
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
      next_(o.device, 2 * sizeof(int32_t)),
      next_here_(o.device, next_.bytes()),
      arena_(o.device),
      logits_here_(o.device, 0),
      last_(config_.vocab),
      start_(o.device),
      end_(o.device) {
  load(map.size(), fill);
  weights_ = view_weights(map, config_, static_cast<const T*>(weights_data_.as<T>()));

  turns_ = upload_rope_tables(rope_frequencies(config_), capacity_, rope_);

  place();
  arena_.commit();
  if (has_gaps(config_)) arena_.clear();
  place();
  logits_here_ = HostBuffer(o.device, size_t(logits_.rows) * logits_.ld * sizeof(T));
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
  qkv_ = rows(1, c.qkv_width());
  o_ = rows(kChunk, c.query_width());
  gate_up_ = rows(kChunk, c.gate_up_width()), act_ = rows(kChunk, c.ffn);
  logits_ = rows(kFewRows, c.vocab);
  const int parts = kernels::decode_parts(stream_.device(), c.kv_heads, capacity_);
  const int part_rows = parts * (c.heads / c.kv_heads);
  parts_ = pitched_batch<float>(nullptr, c.kv_heads, part_rows, c.head_pitch());
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
std::span<const float> DecoderOf<T>::feed(std::span<const int32_t> tokens) {
  check(tokens);
  take(tokens, last_);
  return last_;
}

template <class T>
std::vector<float> DecoderOf<T>::feed_all(std::span<const int32_t> tokens) {
  check(tokens);
  std::vector<float> out(tokens.size() * config_.vocab);
  take(tokens, out);
  return out;
}

template <class T>
void DecoderOf<T>::check(std::span<const int32_t> tokens) const {
  if (tokens.empty()) fail("there are no tokens to decode: give at least one");
  if (length_ + std::ssize(tokens) > capacity_)
    fail_f(
        "the cache holds {} tokens, and {} + {} are wanted: make it longer, or the prompt shorter",
        capacity_, length_, tokens.size());
  for (const int32_t token : tokens)
    if (token < 0 || token >= config_.vocab)
      fail_f("token {} is outside the model's vocabulary of {}", token, config_.vocab);
}

template <class T>
void DecoderOf<T>::take(std::span<const int32_t> tokens, std::span<float> logits) {
  const size_t vocab = config_.vocab;
  const auto receive = [&](int rows) {
    receive_logits(logits.first(rows * vocab));
    logits = logits.subspan(rows * vocab);
  };
  start_.record(stream_);
  while (!tokens.empty()) {
    const auto chunk = tokens.first(std::min<size_t>(kChunk, tokens.size()));
    const int count = static_cast<int>(chunk.size());
    tokens = tokens.subspan(chunk.size());
    if (count == 1) {
      run_token(chunk[0]);
      receive(1);
    } else {
      run_chunk(chunk);
      const auto unwanted = std::ssize(tokens) + count - int64_t(logits.size() / vocab);
      for (int r = int(std::max<int64_t>(0, unwanted)); r < count; r += kFewRows) {
        const int rows = std::min(kFewRows, count - r);
        send_logits(matrix_of<const T>(x_.row(r), rows, x_.cols, x_.ld));
        receive(rows);
      }
    }
    length_ += count;
  }
}

template <class T>
void DecoderOf<T>::embed(Tensor<const int32_t> tokens) {
  launch(stream_, kernels::EmbeddingForwardArgs<T>{.tokens = tokens,
                                                   .table = with_gaps(weights_.embedding),
                                                   .y = with_gaps(first_rows(x_, tokens.cols))});
}

template <class T>
void DecoderOf<T>::run_chunk(std::span<const int32_t> tokens) {
  const int count = static_cast<int>(tokens.size());
  stream_.copy(tokens_.as<int32_t>(), tokens.data(), tokens.size_bytes());
  embed(vector_of<const int32_t>(tokens_.as<int32_t>(), count));
  for (int i = 0; i < config_.layers; ++i) {
    attend_chunk(i, count);
    feed_forward(i, count);
  }
}

template <class T>
void DecoderOf<T>::attend_chunk(int layer, int count) {
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
  launch(stream_,
         kernels::AttentionForwardArgs<T>{.q = with_gaps(q),
                                          .k = with_gaps(cached(keys_, layer, length_ + count)),
                                          .v = with_gaps(cached(values_, layer, length_ + count)),
                                          .o = with_gaps(heads(o_.data, count, c.heads, o_.ld)),
                                          .scale = score_scale()});
  linear(o, w.o, x, x);
}

template <class T>
void DecoderOf<T>::feed_forward(int layer, int count) {
  const LayerWeights<const T>& w = weights_.layers[layer];
  const Tensor<T> x = first_rows(x_, count), n = first_rows(n_, count);
  const Tensor<T> gate_up = first_rows(gate_up_, count), act = first_rows(act_, count);
  norm(x, w.ffn_norm, n);
  linear(n, w.gate_up, gate_up);
  const Halves<T> ffn(gate_up, config_.ffn);
  launch(stream_, kernels::SiluUpForwardArgs<T>{
                      .gate = with_gaps(ffn.gate), .up = with_gaps(ffn.up), .y = with_gaps(act)});
  linear(act, w.down, x, x);
}

// As it is the first time, for setting up may not be captured, and where each launch must be seen.
template <class T>
void DecoderOf<T>::run_token(int32_t token) {
  next_here_.as<int32_t>()[0] = token;
  next_here_.as<int32_t>()[1] = length_;
  if (stream_.device().backend == Backend::cpu || stream_.recorder()) {
    launch_token(length_ + 1);
  } else if (!warm_) {
    launch_token(capacity_);
    warm_ = true;
  } else {
    if (!graph_) graph_ = Graph::capture(stream_, [this] { launch_token(capacity_); });
    graph_->replay(stream_);
  }
}

// Grids are those of `most_keys`; how many there are, the device reads beside the token.
template <class T>
void DecoderOf<T>::launch_token(int most_keys) {
  stream_.copy(next_.as<void>(), next_here_.as<void>(), next_.bytes());
  embed(vector_of<const int32_t>(next_.as<int32_t>(), 1));
  for (int i = 0; i < config_.layers; ++i) {
    attend_token(i, most_keys);
    feed_forward(i, 1);
  }
  send_logits(first_rows(x_, 1));
}

template <class T>
void DecoderOf<T>::attend_token(int layer, int most_keys) {
  const ModelConfig& c = config_;
  const LayerWeights<const T>& w = weights_.layers[layer];
  const Tensor<T> x = first_rows(x_, 1), n = first_rows(n_, 1), o = first_rows(o_, 1);
  const auto position = vector_of<const int32_t>(next_.as<int32_t>() + 1, 1);

  norm(x, w.attention_norm, n);
  linear(n, w.qkv, qkv_);
  launch(stream_, kernels::PlaceQkvArgs<T>{
                      .q = heads_at(qkv_.data, 0, c.heads),
                      .k = heads_at(qkv_.data, c.query_width(), c.kv_heads),
                      .v = heads_at(qkv_.data, c.query_width() + c.kv_width(), c.kv_heads),
                      .queries = heads_at(qkv_.data, 0, c.heads),
                      .keys = cached(keys_, layer, capacity_),
                      .values = cached(values_, layer, capacity_),
                      .cos = turns_.cos,
                      .sin = turns_.sin,
                      .position = position});
  const kernels::AttentionDecodeArgs<T> args{.q = with_gaps(by_group(qkv_.data)),
                                             .k = with_gaps(cached(keys_, layer, most_keys)),
                                             .v = with_gaps(cached(values_, layer, most_keys)),
                                             .o = with_gaps(by_group(o.data)),
                                             .parts = parts_,
                                             .logs = logs_,
                                             .scale = score_scale(),
                                             .length = most_keys,
                                             .position = position};
  launch(stream_, args);
  if (args.part_count() > 1) launch(stream_, args.combine());
  linear(o, w.o, x, x);
}

template <class T>
void DecoderOf<T>::linear(Tensor<const T> x, Tensor<const T> w, Tensor<T> y,
                          Tensor<const T> residual) {
  if (x.rows <= kFewRows)
    launch(stream_, kernels::GemvArgs<T>{
                        .x = with_gaps(x), .w = with_gaps(w), .y = y, .residual = residual});
  else
    cria::linear(stream_, Precision::full, x, w, y, residual);
}

template <class T>
void DecoderOf<T>::norm(Tensor<const T> x, Tensor<const T> w, Tensor<T> y) {
  launch(stream_, kernels::RmsNormForwardArgs<T>{.x = with_gaps(x),
                                                 .w = with_gaps(w),
                                                 .y = with_gaps(y),
                                                 .eps = static_cast<float>(config_.norm_eps),
                                                 .terms = x.cols});
}

template <class T>
void DecoderOf<T>::send_logits(Tensor<const T> x) {
  const Tensor<T> n = first_rows(n_, x.rows), logits = first_rows(logits_, x.rows);
  norm(x, weights_.final_norm, n);
  linear(n, weights_.head, logits);
  stream_.copy(logits_here_.as<T>(), logits.data, logits.rows * logits.ld * sizeof(T));
}

template <class T>
void DecoderOf<T>::receive_logits(std::span<float> out) {
  end_.record(stream_);
  stream_.synchronize();
  const size_t vocab = config_.vocab;
  for (size_t r = 0; r * vocab < out.size(); ++r) {
    const T* from = logits_here_.as<T>() + r * logits_.ld;
    float* to = out.data() + r * vocab;
    for (size_t i = 0; i < vocab; ++i) to[i] = to_float(from[i]);
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
