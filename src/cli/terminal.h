// What is shown while work goes on. Where nobody reads it any more, because a terminal went away, a
// pipe was closed or a disk is full, the work is asked to end as by Ctrl-C (interrupt.h).
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace cria {

// To stdout, at once.
void tell(std::string_view text);

template <class... Args>
void tell_f(fmt::format_string<Args...> format, Args&&... args) {
  tell(fmt::format(format, std::forward<Args>(args)...));
}

// One line that is written over, on a terminal only.

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool shown() const { return terminal_; }  // stderr is a terminal
  void show(const std::string& text);
  void clear();

 private:
  void write(std::string_view text);

  bool terminal_;
  bool dirty_ = false;
};

// "[=====>    ] 12/40"
std::string progress_bar(int64_t done, int64_t total, int width = 24);

// "1h02m", "3m07s", "12s"
std::string show_duration(double seconds);

}  // namespace cria
