#include "tile/cpu/print.h"

#include <cstdio>
#include <string>

namespace cria::tile {
namespace {

constexpr int kEdge = 6;  // values shown at either end

// Calls f(i) for the first and last few of n, and skip() once for those in between.
template <class F, class Skip>
void ends_of(int n, F f, Skip skip) {
  for (int i = 0; i < n; ++i) {
    if (n > 2 * kEdge + 1 && i == kEdge) {
      skip();
      i = n - kEdge;
    }
    f(i);
  }
}

}  // namespace

void print_tile(const char* name, const int (&program)[3], const float* values, int rows,
                int cols) {
  std::string text = "program (" + std::to_string(program[0]) + "," + std::to_string(program[1]) +
                     "," + std::to_string(program[2]) + ") " + name + " " + std::to_string(rows) +
                     " x " + std::to_string(cols) + "\n";
  ends_of(
      rows,
      [&](int r) {
        ends_of(
            cols,
            [&](int c) {
              char number[32];
              std::snprintf(number, sizeof(number), " %10.4g", double{values[r * cols + c]});
              text += number;
            },
            [&] { text += " ..."; });
        text += "\n";
      },
      [&] { text += " ...\n"; });
  std::fputs(text.c_str(), stdout);  // one call: lines of different programs do not mix
}

}  // namespace cria::tile
