#include "train/device_batch.h"

#include <algorithm>

#include "base/format.h"
#include "kernels/embedding.h"

namespace cria {
namespace {

constexpr int kParts = 5;  // tokens, targets, order, starts, ids

}  // namespace

DeviceBatch::DeviceBatch(Device device, int rows, int vocab)
    : rows_(rows),
      vocab_(vocab),
      host_(offset(kParts)),
      device_(device, host_.size() * sizeof(int32_t)) {
  auto vector = [&](int part, int count) {
    return vector_of<const int32_t>(device_.as<int32_t>() + offset(part), count);
  };
  hyper_ = vector_of<const float>(device_.as<float>(), kernels::kAdamWHypers);
  view_ = {.tokens = vector(0, rows),
           .targets = vector(1, rows),
           .order = vector(2, rows),
           .starts = vector(3, rows + 1),
           .ids = vector(4, rows)};
}

void DeviceBatch::upload(Stream& stream, const HostBatch& batch) {
  for (const auto values : {batch.tokens, batch.targets}) {
    if (std::ssize(values) != rows_)
      fail_f("a batch has {} tokens, but the trainer was made for {}", values.size(), rows_);
    for (const int32_t token : values)
      if (token < 0 || token >= vocab_)
        fail_f("token {} is outside the model's vocabulary of {}", token, vocab_);
  }
  std::ranges::copy(batch.tokens, part(0).begin());
  std::ranges::copy(batch.targets, part(1).begin());
  kernels::sort_tokens(batch.tokens, part(2), part(3, 1), part(4));
  stream.copy(device_.as<int32_t>(), host_.data(), device_.bytes());
}

}  // namespace cria
