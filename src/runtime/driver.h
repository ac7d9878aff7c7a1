// What a backend provides to the classes of runtime/, which call nothing else of it.
// Streams, events and graphs are opaque handles here; a null handle is valid on the CPU only.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "runtime/device.h"
#include "runtime/memory_use.h"

namespace cria {

class Driver {
 public:
  virtual ~Driver() = default;

  virtual int device_count() const = 0;
  // Why device_count() is 0 and what to do about it, as the end of a sentence.
  virtual std::string absent_reason() const = 0;
  // Why a device that is there cannot run this binary's kernels, likewise; empty if it can.
  virtual std::string why_unusable(int index) const = 0;
  virtual DeviceInfo describe(int index) const = 0;
  virtual void make_current(int index) const = 0;

  virtual void* allocate(int index, size_t bytes) const = 0;
  virtual void release(int index, void* data) const noexcept = 0;
  // Host memory that the device reads and writes by itself, so that copies need no detour.
  virtual void* allocate_host(int index, size_t bytes) const = 0;
  virtual void release_host(int index, void* data) const noexcept = 0;

  virtual MemoryUse memory_use(int index) const = 0;
  // MemoryUse::peak begins anew, where the system permits it.
  virtual void forget_memory_peak(int index) const = 0;

  virtual void* make_stream(int index) const = 0;
  virtual void destroy_stream(int index, void* stream) const noexcept = 0;
  virtual void synchronize(int index, void* stream) const = 0;
  // In stream order; either side may be host memory.
  virtual void copy(int index, void* stream, void* to, const void* from, size_t bytes) const = 0;
  virtual void fill(int index, void* stream, void* data, int byte, size_t bytes) const = 0;

  virtual void* make_event(int index) const = 0;
  virtual void destroy_event(int index, void* event) const noexcept = 0;
  // In a capture, an event that is timed only becomes a part of the graph.
  virtual void record_event(int index, void* event, void* stream, bool timed_only) const = 0;
  virtual void synchronize_event(int index, void* event) const = 0;
  virtual double elapsed_us(int index, void* start, void* end) const = 0;

  // Records what `launches` puts into the stream, without running it.
  virtual void* capture(int index, void* stream, const std::function<void()>& launches) const = 0;
  virtual void replay(int index, void* graph, void* stream) const = 0;
  virtual void destroy_graph(int index, void* graph) const noexcept = 0;

  // Named ranges for the vendor's profiler.
  virtual void push_range(const char* name) const = 0;
  virtual void pop_range() const noexcept = 0;
};

const Driver& cpu_driver();
const Driver& cuda_driver();  // in cuda/, or in cuda_stub/ for a build without CUDA

inline const Driver& driver_of(Device device) {
  return device.backend == Backend::cuda ? cuda_driver() : cpu_driver();
}

}  // namespace cria
