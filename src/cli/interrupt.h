// Ctrl-C in commands that have something to finish: the first one asks for an end after the launch
// in progress, the second ends at once.
#pragma once

#include <atomic>

namespace cria {

// Whether it was pressed. The first call begins to watch: until then, and in commands that never
// ask, Ctrl-C ends the program as usual.
const std::atomic<bool>& interrupted();

}  // namespace cria
