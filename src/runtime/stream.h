// A queue of work on one device, done in order. CPU streams do the work at once, in the caller.
#pragma once

#include <cstddef>

#include "runtime/buffer.h"
#include "runtime/device.h"

namespace cria {

class Recorder;

class Stream {
 public:
  explicit Stream(Device device);
  ~Stream();
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;

  Device device() const { return device_; }
  void* native() const { return native_; }  // cudaStream_t; null on the CPU

  // Waits until all work put in so far is done, and reports what went wrong in it.
  void synchronize();

  // In stream order. Either side of a copy may be host memory.
  void copy(void* to, const void* from, size_t bytes);
  void fill(void* data, int byte, size_t bytes);

  // Where launches are recorded; null, the default, records nothing. The recorder is not owned.
  Recorder* recorder() const { return recorder_; }
  void set_recorder(Recorder* recorder) { recorder_ = recorder; }

  // Device memory for the call about to be put into this stream; the next call may overwrite it.
  // It grows on demand, so what a Graph captures must ask for no more than was asked before.
  std::byte* workspace(size_t bytes);
  size_t workspace_bytes() const { return workspace_.bytes(); }

 private:
  Device device_;
  void* native_ = nullptr;
  Recorder* recorder_ = nullptr;
  Buffer workspace_;
};

}  // namespace cria
