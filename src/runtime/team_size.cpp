#include "runtime/team_size.h"

#include <algorithm>

namespace cria {

void TeamSize::lost(Duration waited, Time now) {
  const auto borne = std::chrono::duration_cast<Duration>((now - counted_) * kBearable);
  debt_ = std::max(debt_ - borne, Duration{0}) + waited;
  counted_ = now;
  if (debt_ <= kPatience || size_ == 1) return;
  debt_ = {};
  period_ = now - grown_ <= period_ ? std::min(2 * period_, kLongest) : kShortest;
  --size_;
  next_ = now + period_;
}

int TeamSize::size_at(Time now) {
  if (reduced() && now >= next_) {
    size_ = std::min(workers_, size_ + std::max(1, size_ / 2));
    grown_ = now;
    next_ = now + period_;
  }
  return size_;
}

}  // namespace cria
