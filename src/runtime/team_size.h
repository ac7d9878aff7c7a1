// How many workers a call is shared out among. All of them, unless the machine is busy: a worker
// whose core another process has taken for the rest of its time slice holds up everybody else, for
// thousands of times as long as a launch takes.
#pragma once

#include <chrono>

namespace cria {

class TeamSize {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  using Duration = Clock::duration;

  explicit TeamSize(int workers) : workers_(workers), size_(workers) {}

  // The caller has waited, until now, for workers that did not run. Where such waits take more than
  // a share of kBearable of the time, and kPatience in all, one worker less is called for a while.
  void lost(Duration waited, Time now);

  bool reduced() const { return size_ < workers_; }
  int size() const { return size_; }
  // The same for a call that begins now: it may be time to try more workers again.
  int size_at(Time now);

  static constexpr double kBearable = 0.1;
  static constexpr Duration kPatience = std::chrono::milliseconds(2);
  // Until the next trial. It doubles when the trial fails as early as that.
  static constexpr Duration kShortest = std::chrono::milliseconds(25);
  static constexpr Duration kLongest = std::chrono::milliseconds(800);

 private:
  int workers_, size_;
  Duration debt_{};              // waits that the time since then has not made bearable
  Time counted_{};               // when debt_ was right
  Duration period_ = kShortest;  // between trials
  Time grown_{}, next_{};        // the last trial and the next one
};

}  // namespace cria
