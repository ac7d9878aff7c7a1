// Ctrl-C in commands that have something to finish: the first one asks for an end after the launch
// in progress, the second ends at once. So do SIGTERM and SIGHUP, which a terminal sends that goes
// away; but SIGHUP may come twice, and one that is ignored from the start (nohup) stays ignored.
#pragma once

#include <atomic>

namespace cria {

// Whether it was pressed. The first call begins to watch: until then, and in commands that never
// ask, Ctrl-C ends the program as usual.
const std::atomic<bool>& interrupted();

// As if it had been pressed: by what can go on no longer, but should be finished.
void request_end();

}  // namespace cria
