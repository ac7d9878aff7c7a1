#include "runtime/arena.h"

#include <limits>

#include "base/error.h"
#include "base/format.h"

namespace cria {

Arena::Arena(Device device) : device_(device) {}

Arena::Arena(Device device, size_t bytes)
    : device_(device), buffer_(std::in_place, device, bytes) {}

std::byte* Arena::take_bytes(size_t bytes) {
  size_t start = (used_ + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes > std::numeric_limits<size_t>::max() / 2 - start) {
    fail_f("{} bytes cannot be taken from an arena: no memory is that large", bytes);
  }
  if (!planning() && start + bytes > capacity_bytes()) {
    fail_f(
        "the arena on {} is full: {} bytes asked for, {} of {} bytes in use; plan with the same "
        "shapes before commit()",
        name_of(device_), bytes, used_, capacity_bytes());
  }
  used_ = start + bytes;
  return planning() || capacity_bytes() == 0 ? nullptr : buffer_->as<std::byte>() + start;
}

void Arena::commit() {
  require(planning(), "Arena::commit() called twice: an arena is committed once, after planning");
  buffer_.emplace(device_, used_);
  used_ = 0;
}

void Arena::clear() {
  if (buffer_) buffer_->fill_bytes(0);
}

size_t Arena::checked_bytes(int64_t count, size_t size) {
  if (count < 0 || static_cast<size_t>(count) > std::numeric_limits<size_t>::max() / 2 / size) {
    fail_f("an arena cannot give out {} elements of {} bytes", count, size);
  }
  return static_cast<size_t>(count) * size;
}

}  // namespace cria
