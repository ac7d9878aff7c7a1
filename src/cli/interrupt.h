// Ctrl-C in commands that have something to finish: the first one asks for an end after the launch
// in progress, the second ends at once. SIGTERM does the same, and so does
// SIGHUP, which comes when the terminal is closed; but a second SIGHUP changes nothing, and where it
// is ignored when the program starts, as under nohup, it stays ignored.
#pragma once

#include <atomic>

namespace cria {

// Whether it was pressed. The first call begins to watch: until then, and in commands that never
// ask, Ctrl-C ends the program as usual.
const std::atomic<bool>& interrupted();

// As if it had been pressed: by what can go on no longer, but should be finished.
void request_end();

}  // namespace cria
