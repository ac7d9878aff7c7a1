// Ctrl-C: the first one asks for an end after the launch in progress, the second ends at once.
#pragma once

#include <atomic>

namespace cria {

void watch_interrupts();
const std::atomic<bool>& interrupted();

}  // namespace cria
