#include "runtime/event.h"

#include <utility>

#include "base/error.h"
#include "runtime/driver.h"
#include "runtime/stream.h"

namespace cria {

Event::Event(Device device)
    : device_(device), native_(driver_of(device).make_event(device.index)) {}

Event::~Event() {
  if (native_) driver_of(device_).destroy_event(device_.index, native_);
}

Event::Event(Event&& other) noexcept
    : device_(other.device_), native_(std::exchange(other.native_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(native_, other.native_);
  return *this;
}

void Event::record(Stream& stream) { record(stream, false); }

void Event::record_time(Stream& stream) { record(stream, true); }

void Event::record(Stream& stream, bool timed_only) {
  require(stream.device() == device_,
          "an Event can only be recorded in a Stream of its own device");
  driver_of(device_).record_event(device_.index, native_, stream.native(), timed_only);
}

void Event::synchronize() const { driver_of(device_).synchronize_event(device_.index, native_); }

double elapsed_us(const Event& start, const Event& end) {
  require(start.device() == end.device(), "elapsed_us needs two Events of the same device");
  end.synchronize();
  return driver_of(end.device()).elapsed_us(end.device().index, start.native(), end.native());
}

}  // namespace cria
