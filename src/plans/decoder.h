// Decoding: one sequence grows token by token, and the keys and values of its past are kept. A
// prompt is taken in one go by products; single tokens by products of a vector, which read each
// weight once, and on CUDA as one graph, which fits them all: what differs from token to token is
// in device memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "model/config.h"
#include "model/weights.h"
#include "runtime/device.h"
#include "runtime/stream.h"

namespace cria {

struct DecoderOptions {
  ModelConfig model;
  Device device = kCpu;
  DType dtype = DType::f32;  // of weights, cache and activations: f32 or bf16
  int capacity = 0;          // tokens the cache holds; 0: the model's context
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Takes the tokens that follow those taken before, and gives the logits for what comes next, [V],
  // which stay until the next call. An Error when the cache is full.
  virtual std::span<const float> feed(std::span<const int32_t> tokens) = 0;

  // The same with the logits after every token, [n, V].
  virtual std::vector<float> feed_all(std::span<const int32_t> tokens) = 0;

  // Forgets everything after the first `length` tokens.
  virtual void rewind(int length) = 0;

  // Time that the device took for the last call of feed or feed_all, from the first token's copy to
  // the arrival of the last logits.
  virtual double device_us() const = 0;

  virtual int length() const = 0;
  virtual int capacity() const = 0;
  virtual Stream& stream() = 0;

 protected:
  Decoder() = default;
};

// Fills a flat array of zeros in host memory, in the layout of a map. It may be the decoder's own:
// what is filled need not be in memory twice.
using FillWeights = std::function<void(std::span<float>)>;

std::unique_ptr<Decoder> make_decoder(const DecoderOptions& options, const WeightMap& map,
                                      const FillWeights& fill);

}  // namespace cria
