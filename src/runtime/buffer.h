// Owned memory on a device. Its own copies are ordered after all work put into the device's
// streams before them, and are complete on return; Stream::copy and Stream::fill do not wait.
#pragma once

#include <cstddef>

#include "runtime/device.h"

namespace cria {

class Buffer {
 public:
  Buffer(Device device, size_t bytes);  // not initialised; 256-byte aligned or better
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  Device device() const { return device_; }
  size_t bytes() const { return bytes_; }

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

  void copy_from_host(const void* source, size_t bytes, size_t offset_bytes = 0);
  void copy_to_host(void* target, size_t bytes, size_t offset_bytes = 0) const;
  void fill_bytes(int byte);

 private:
  void* range(size_t offset_bytes, size_t bytes) const;

  Device device_;
  size_t bytes_ = 0;
  void* data_ = nullptr;
};

}  // namespace cria
