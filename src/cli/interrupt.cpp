#include "cli/interrupt.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace cria {
namespace {

// The one thing a signal handler can reach.
std::atomic<bool> interrupt_seen{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int) { interrupt_seen.store(true, std::memory_order_relaxed); }

// A thread that only waits takes the signals: on the calling one, which computes, the handler's
// frame could be written over a library's data (leave_signals_to_others() in the thread pool).
bool watch_interrupts() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {}, action = {};
    ::sigaction(signal, nullptr, &before);
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) continue;
    action.sa_handler = on_signal;
    if (signal != SIGHUP) action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(signal, &action, nullptr);
    sigaddset(&watched, signal);
  }
  std::thread([] {
    for (;;) ::pause();
  }).detach();
  pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  return true;
}

}  // namespace

const std::atomic<bool>& interrupted() {
  [[maybe_unused]] static const bool watching = watch_interrupts();
  return interrupt_seen;
}

void request_end() { interrupt_seen.store(true, std::memory_order_relaxed); }

}  // namespace cria
