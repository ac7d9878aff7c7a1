#include "runtime/stream.h"

#include <utility>

#include "runtime/driver.h"

namespace cria {

Stream::Stream(Device device)
    : device_(device),
      native_(driver_of(device).make_stream(device.index)),
      workspace_(device, 0) {}

Stream::~Stream() {
  if (native_) driver_of(device_).destroy_stream(device_.index, native_);
}

Stream::Stream(Stream&& other) noexcept
    : device_(other.device_),
      native_(std::exchange(other.native_, nullptr)),
      recorder_(std::exchange(other.recorder_, nullptr)),
      workspace_(std::move(other.workspace_)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(native_, other.native_);
  std::swap(recorder_, other.recorder_);
  std::swap(workspace_, other.workspace_);
  return *this;
}

void Stream::synchronize() { driver_of(device_).synchronize(device_.index, native_); }

void Stream::copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) driver_of(device_).copy(device_.index, native_, to, from, bytes);
}

void Stream::fill(void* data, int byte, size_t bytes) {
  if (bytes > 0) driver_of(device_).fill(device_.index, native_, data, byte, bytes);
}

std::byte* Stream::workspace(size_t bytes) {
  if (bytes > workspace_.bytes()) {
    if (workspace_.bytes() > 0) synchronize();  // not in a capture, where the first use is fine
    workspace_ = Buffer(device_, bytes);
  }
  return workspace_.as<std::byte>();
}

}  // namespace cria
