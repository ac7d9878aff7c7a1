// A batch on its way to the device: tokens, targets, and the order of positions by token that the
// embedding's backward pass wants, in one array and one copy.
#pragma once

#include <vector>

#include "plans/plan.h"
#include "runtime/buffer.h"
#include "runtime/stream.h"
#include "train/trainer.h"

namespace cria {

class DeviceBatch {
 public:
  DeviceBatch(Device device, int rows, int vocab);

  // An Error names the first token outside the vocabulary.
  void upload(Stream& stream, const HostBatch& batch);

  const Batch& view() const { return view_; }

 private:
  std::span<int32_t> part(int index) {
    return std::span(host_).subspan(size_t(index) * (rows_ + 1), rows_);
  }

  int rows_, vocab_;
  std::vector<int32_t> host_;
  Buffer device_;
  Batch view_;
};

}  // namespace cria
