// What is shown while work goes on: one line that is written over, on a terminal only.
#pragma once

#include <string>

namespace cria {

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
  bool terminal_;
  bool dirty_ = false;
};

// "[=====>    ] 12/40"
std::string progress_bar(int64_t done, int64_t total, int width = 24);

// "1h02m", "3m07s", "12s"
std::string show_duration(double seconds);

}  // namespace cria
