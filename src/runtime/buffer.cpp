#include "runtime/buffer.h"

#include <utility>

#include "base/format.h"
#include "runtime/driver.h"

namespace cria {

// NOTE: null is CUDA's legacy stream, which waits for the device's other streams and they for it
// (CUDA programming guide, "Default Stream"); Driver::make_stream() makes streams that take part.
constexpr void* kDefaultStream = nullptr;

Buffer::Buffer(Device device, size_t bytes) : device_(device), bytes_(bytes) {
  if (bytes > 0) data_ = driver_of(device).allocate(device.index, bytes);
}

Buffer::~Buffer() {
  if (data_) driver_of(device_).release(device_.index, data_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(other.device_),
      bytes_(std::exchange(other.bytes_, 0)),
      data_(std::exchange(other.data_, nullptr)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(bytes_, other.bytes_);
  std::swap(data_, other.data_);
  return *this;
}

void* Buffer::range(size_t offset_bytes, size_t bytes) const {
  if (offset_bytes > bytes_ || bytes > bytes_ - offset_bytes) {
    fail_f("a copy of {} bytes at offset {} does not fit into a buffer of {} bytes on {}", bytes,
           offset_bytes, bytes_, name_of(device_));
  }
  return static_cast<std::byte*>(data_) + offset_bytes;
}

void Buffer::copy_from_host(const void* source, size_t bytes, size_t offset_bytes) {
  void* target = range(offset_bytes, bytes);
  if (bytes == 0) return;
  const Driver& driver = driver_of(device_);
  driver.copy(device_.index, kDefaultStream, target, source, bytes);
  driver.synchronize(device_.index, kDefaultStream);
}

void Buffer::copy_to_host(void* target, size_t bytes, size_t offset_bytes) const {
  const void* source = range(offset_bytes, bytes);
  if (bytes == 0) return;
  const Driver& driver = driver_of(device_);
  driver.copy(device_.index, kDefaultStream, target, source, bytes);
  driver.synchronize(device_.index, kDefaultStream);
}

void Buffer::fill_bytes(int byte) {
  if (bytes_ == 0) return;
  const Driver& driver = driver_of(device_);
  driver.fill(device_.index, kDefaultStream, data_, byte, bytes_);
  driver.synchronize(device_.index, kDefaultStream);
}

}  // namespace cria
