#include "runtime/recorder.h"

#include "base/error.h"
#include "runtime/driver.h"

namespace cria {

const std::vector<LaunchRecord>& Recorder::records() {
  if (mode_ == Mode::count) return records_;
  for (; resolved_ < records_.size(); ++resolved_) {
    const Event& start = events_[2 * resolved_];
    const Event& end = events_[2 * resolved_ + 1];
    LaunchRecord& record = records_[resolved_];
    record.time_us = elapsed_us(start, end);
    record.start_us = elapsed_us(events_[0], start);
    record.timed = true;
  }
  return records_;
}

int64_t Recorder::launches() const {
  int64_t sum = 0;
  for (const LaunchRecord& record : records_) sum += record.launches;
  return sum;
}

Cost Recorder::total_cost() const {
  Cost sum;
  for (const LaunchRecord& record : records_) sum += record.cost;
  return sum;
}

void Recorder::clear() {
  records_.clear();
  resolved_ = 0;
}

size_t Recorder::begin(Stream& stream, std::string_view name, std::string_view config,
                       const Cost& cost, int launches) {
  size_t index = records_.size();
  records_.push_back({.name = std::string(name),
                      .config = std::string(config),
                      .cost = cost,
                      .launches = launches});
  driver_of(stream.device()).push_range(records_.back().name.c_str());
  if (mode_ == Mode::time) event_of(index, false, stream.device()).record(stream);
  return index;
}

void Recorder::end(Stream& stream, size_t index) {
  if (mode_ == Mode::time) event_of(index, true, stream.device()).record(stream);
  driver_of(stream.device()).pop_range();
}

void Recorder::cancel(Stream& stream, size_t index) noexcept {
  records_.resize(index);
  driver_of(stream.device()).pop_range();
}

// Events are made on first use and kept, so that a recorder cleared each step stops allocating.
Event& Recorder::event_of(size_t index, bool at_end, Device device) {
  while (events_.size() < 2 * index + 2) events_.emplace_back(device);
  Event& event = events_[2 * index + at_end];
  require(event.device() == device, "a Recorder in time mode records streams of one device only");
  return event;
}

}  // namespace cria
