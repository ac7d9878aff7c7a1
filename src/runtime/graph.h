// A sequence of launches kept to be run again as one: no launch overhead between them on CUDA.
// Pointers and arguments are those of the capture, and the captured stream's workspace is among
// them: the stream must outlive the graph. On the CPU the function itself is kept and called.
#pragma once

#include <functional>

#include "base/cost.h"
#include "runtime/device.h"
#include "runtime/stream.h"

namespace cria {

class Graph {
 public:
  // Records what `launches` puts into the stream, without running it. The function must not wait
  // for the stream. Run it once before: setting things up for the first time may not be captured.
  static Graph capture(Stream& stream, std::function<void()> launches);

  ~Graph();
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;

  // Puts the whole sequence into the stream. A recorder sees one record on CUDA, called "graph",
  // with the number of launches and their summed cost; on the CPU it sees each launch.
  void replay(Stream& stream);

 private:
  Graph(Device device, void* native) : device_(device), native_(native) {}

  Device device_;
  void* native_ = nullptr;
  int launches_ = 0;  // recorded in the capture; 0 on the CPU
  Cost cost_;
};

}  // namespace cria
