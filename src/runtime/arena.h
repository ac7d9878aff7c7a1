// Device memory handed out from one allocation, planned before it is made: take everything once to
// count it, commit(), then take everything again for real, in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/buffer.h"
#include "runtime/device.h"

namespace cria {

class Arena {
 public:
  static constexpr size_t kAlignment = 256;

  explicit Arena(Device device);       // planning: take() counts and returns null
  Arena(Device device, size_t bytes);  // committed from the start

  // The next `bytes`, aligned to 256. Fails when a committed arena is full.
  std::byte* take_bytes(size_t bytes);

  template <class T>
  T* take(int64_t count) {
    return reinterpret_cast<T*>(take_bytes(checked_bytes(count, sizeof(T))));
  }

  // Allocates what the plan needed, and starts again from the beginning.
  void commit();

  // Zeros everywhere.
  void clear();

  Device device() const { return device_; }
  bool planning() const { return !buffer_; }
  size_t used_bytes() const { return used_; }
  size_t capacity_bytes() const { return buffer_ ? buffer_->bytes() : 0; }

 private:
  static size_t checked_bytes(int64_t count, size_t size);

  Device device_;
  std::optional<Buffer> buffer_;
  size_t used_ = 0;
};

}  // namespace cria
