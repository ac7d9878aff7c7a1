#include "runtime/graph.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "runtime/driver.h"
#include "runtime/recorder.h"

namespace cria {
namespace {

// Puts the stream's own recorder back, also when the capture throws.
class RecorderSwap {
 public:
  RecorderSwap(Stream& stream, Recorder* recorder) : stream_(stream), before_(stream.recorder()) {
    stream.set_recorder(recorder);
  }
  ~RecorderSwap() { stream_.set_recorder(before_); }
  RecorderSwap(const RecorderSwap&) = delete;

 private:
  Stream& stream_;
  Recorder* before_;
};

}  // namespace

Graph Graph::capture(Stream& stream, std::function<void()> launches) {
  // Events of a captured stream have no times, so the launches are only counted.
  Recorder counter(Recorder::Mode::count);
  RecorderSwap swap(stream, &counter);
  Device device = stream.device();
  Graph graph(device, driver_of(device).capture(device.index, stream.native(), launches));
  graph.launches_ = static_cast<int>(counter.launches());
  graph.cost_ = counter.total_cost();
  return graph;
}

Graph::~Graph() {
  if (native_) driver_of(device_).destroy_graph(device_.index, native_);
}

Graph::Graph(Graph&& other) noexcept
    : device_(other.device_),
      native_(std::exchange(other.native_, nullptr)),
      launches_(other.launches_),
      cost_(other.cost_) {}

Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(native_, other.native_);
  std::swap(launches_, other.launches_);
  std::swap(cost_, other.cost_);
  return *this;
}

void Graph::replay(Stream& stream) {
  require(stream.device() == device_, "a Graph can only be replayed in a Stream of its own device");
  const Driver& driver = driver_of(device_);
  auto run = [&] { driver.replay(device_.index, native_, stream.native()); };
  if (!stream.recorder() || device_.backend == Backend::cpu) {
    run();
    return;
  }
  record_launch(stream, "graph", std::to_string(launches_) + " launches", cost_, run, launches_);
}

}  // namespace cria
