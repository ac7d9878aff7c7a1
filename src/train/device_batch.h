// What a step is given, on its way to the device in one array and one copy: the optimizer's
// numbers, tokens, targets, and the order of positions by token that the embedding's backward pass
// wants.
#pragma once

#include <bit>
#include <vector>

#include "kernels/adamw.h"
#include "plans/plan.h"
#include "runtime/buffer.h"
#include "runtime/stream.h"
#include "train/trainer.h"

namespace cria {

class DeviceBatch {
 public:
  DeviceBatch(Device device, int rows, int vocab);

  // One of kernels/adamw.h, on the device with the next upload.
  void set_hyper(kernels::AdamWHyper which, float value) {
    host_[which] = std::bit_cast<int32_t>(value);
  }

  // An Error names the first token outside the vocabulary.
  void upload(Stream& stream, const HostBatch& batch);

  const Batch& view() const { return view_; }
  Tensor<const float> hyper() const { return hyper_; }

 private:
  std::span<int32_t> part(int index, int extra = 0) {
    return std::span(host_).subspan(offset(index), rows_ + extra);
  }
  size_t offset(int part) const { return kernels::kAdamWHypers + size_t(part) * (rows_ + 1); }

  int rows_, vocab_;
  std::vector<int32_t> host_;
  Buffer device_;
  Tensor<const float> hyper_;
  Batch view_;
};

}  // namespace cria
