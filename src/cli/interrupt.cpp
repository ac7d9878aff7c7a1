#include "cli/interrupt.h"

#include <csignal>

namespace cria {
namespace {

// The one thing a signal handler can reach.
std::atomic<bool> interrupt_seen{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int) { interrupt_seen.store(true, std::memory_order_relaxed); }

bool watch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  return true;
}

}  // namespace

const std::atomic<bool>& interrupted() {
  [[maybe_unused]] static const bool watching = watch_interrupts();
  return interrupt_seen;
}

}  // namespace cria
