#include "cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/interrupt.h"

namespace cria {
namespace {

bool print(std::FILE* file, std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

}  // namespace

void tell(std::string_view text) {
  if (!print(stdout, text)) request_end();
}

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(const std::string& text) {
  if (!terminal_) return;
  dirty_ = true;
  write(fmt::format("\r{}\033[K", text));
}

void ProgressLine::clear() {
  if (!dirty_) return;
  dirty_ = false;
  write("\r\033[K");
}

void ProgressLine::write(std::string_view text) {
  if (!print(stderr, text)) request_end();
}

std::string progress_bar(int64_t done, int64_t total, int width) {
  const int64_t filled = total > 0 ? std::clamp<int64_t>(done * width / total, 0, width) : 0;
  std::string bar(size_t(filled), '=');
  if (filled < width) bar += '>';
  bar.resize(size_t(width), ' ');
  return fmt::format("[{}] {}/{}", bar, done, total);
}

std::string show_duration(double seconds) {
  const auto s = static_cast<int64_t>(seconds + 0.5);
  if (s >= 3600) return fmt::format("{}h{:02}m", s / 3600, s % 3600 / 60);
  if (s >= 60) return fmt::format("{}m{:02}s", s / 60, s % 60);
  return fmt::format("{}s", s);
}

}  // namespace cria
