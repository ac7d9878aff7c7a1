// The single point that every kernel launch and library product passes through. Launch counts,
// profiles, timelines and rooflines are views of Recorder::records().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cost.h"
#include "runtime/event.h"
#include "runtime/stream.h"

namespace cria {

struct LaunchRecord {
  std::string name;    // what ran: "RmsNormForward", "product"
  std::string config;  // how: tuning parameters, shape, library algorithm
  Cost cost;
  int launches = 1;     // those of the whole sequence for the replay of a Graph
  bool timed = false;   // whether the two times below were measured
  double start_us = 0;  // since the start of the Recorder's first record
  double time_us = 0;
};

// Attach it with Stream::set_recorder(). In time mode two events bracket each launch, which costs
// microseconds per launch: use count mode where only names, costs and order matter.
class Recorder {
 public:
  enum class Mode { count, time };

  explicit Recorder(Mode mode) : mode_(mode) {}

  Mode mode() const { return mode_; }

  // In launch order; in time mode this waits for the launches to finish.
  const std::vector<LaunchRecord>& records();

  int64_t launches() const;  // sum over the records
  Cost total_cost() const;

  // Forgets the records and keeps their events for reuse.
  void clear();

  // For record_launch(): opens a record and gives its index; end() closes it, cancel() drops it.
  size_t begin(Stream& stream, std::string_view name, std::string_view config, const Cost& cost,
               int launches);
  void end(Stream& stream, size_t index);
  void cancel(Stream& stream, size_t index) noexcept;

 private:
  Event& event_of(size_t index, bool at_end, Device device);

  Mode mode_;
  std::vector<LaunchRecord> records_;
  std::vector<Event> events_;  // start and end of each record, in time mode
  size_t resolved_ = 0;        // records whose times are known
};

// Runs launch(), which puts work into the stream, and records it if the stream has a recorder.
template <class Launch>
void record_launch(Stream& stream, std::string_view name, std::string_view config, const Cost& cost,
                   Launch&& launch, int launches = 1) {
  Recorder* recorder = stream.recorder();
  if (!recorder) {
    std::forward<Launch>(launch)();
    return;
  }
  size_t index = recorder->begin(stream, name, config, cost, launches);
  try {
    std::forward<Launch>(launch)();
  } catch (...) {
    recorder->cancel(stream, index);
    throw;
  }
  recorder->end(stream, index);
}

}  // namespace cria
