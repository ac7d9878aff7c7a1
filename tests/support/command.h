// Runs a shell command and keeps what it says.
#pragma once

#include <cstdio>
#include <string>

namespace cria::test {

struct CommandResult {
  bool ok = false;     // it ran and its exit status was 0
  std::string output;  // standard output and error
};

// As one word of a command, whatever is in it.
inline std::string quoted(const std::string& word) {
  std::string out = "'";
  for (char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

inline CommandResult run_command(const std::string& command) {
  CommandResult result;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return result;
  char piece[4096];
  while (const size_t n = fread(piece, 1, sizeof(piece), pipe)) result.output.append(piece, n);
  result.ok = pclose(pipe) == 0;
  return result;
}

}  // namespace cria::test
