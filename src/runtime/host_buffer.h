// Host memory for what goes to and from a device: Stream::copy reaches it without a detour, and does
// not wait. On CUDA it is pinned.
#pragma once

#include <cstddef>

#include "runtime/device.h"

namespace cria {

class HostBuffer {
 public:
  HostBuffer(Device device, size_t bytes);  // not initialised
  ~HostBuffer();
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&& other) noexcept;

  size_t bytes() const { return bytes_; }

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  Device device_;
  size_t bytes_ = 0;
  void* data_ = nullptr;
};

}  // namespace cria
