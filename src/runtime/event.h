// A point in a stream's work that can be waited for and timed.
#pragma once

#include "runtime/device.h"

namespace cria {

class Stream;

class Event {
 public:
  explicit Event(Device device);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;

  // Marks the end of the work put into the stream so far; recording again moves the mark.
  void record(Stream& stream);

  // The same for a mark inside a graph: captured, it moves with each replay.
  void record_time(Stream& stream);

  // Waits until the device has passed the mark.
  void synchronize() const;

  Device device() const { return device_; }
  void* native() const { return native_; }  // cudaEvent_t on CUDA

 private:
  void record(Stream& stream, bool timed_only);

  Device device_;
  void* native_ = nullptr;
};

// Time between two recorded events of one device; waits for `end`.
double elapsed_us(const Event& start, const Event& end);

}  // namespace cria
