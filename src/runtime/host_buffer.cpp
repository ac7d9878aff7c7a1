#include "runtime/host_buffer.h"

#include <utility>

#include "runtime/driver.h"

namespace cria {

HostBuffer::HostBuffer(Device device, size_t bytes) : device_(device), bytes_(bytes) {
  if (bytes > 0) data_ = driver_of(device).allocate_host(device.index, bytes);
}

HostBuffer::~HostBuffer() {
  if (data_) driver_of(device_).release_host(device_.index, data_);
}

HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : device_(other.device_),
      bytes_(std::exchange(other.bytes_, 0)),
      data_(std::exchange(other.data_, nullptr)) {}

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(bytes_, other.bytes_);
  std::swap(data_, other.data_);
  return *this;
}

}  // namespace cria
