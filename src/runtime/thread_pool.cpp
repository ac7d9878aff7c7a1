#include "runtime/thread_pool.h"

#include <csignal>
#include <cstdlib>
#include <new>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "runtime/cpu/cores.h"
#include "runtime/cpu/float_mode.h"

namespace cria {
namespace {

constexpr int kTeamBits = 12;
constexpr uint32_t kTeamMask = (1u << kTeamBits) - 1;
constexpr int kMaxWorkers = 1024;
static_assert(kMaxWorkers <= static_cast<int>(kTeamMask));

// About 50 us of `pause`: longer than the gap between two launches of a step.
constexpr int kSpins = 2000;

constexpr std::align_val_t kScratchAlignment{64};

// Thrown out of barrier() and pause() after another worker has failed; the other's exception is the
// one kept.
struct Abandoned {};

// NOTE: while oneDNN's generated products run, the stack pointer is in the middle of their data
// (seen with 2.6), and a handler's frame would be written over it. So workers leave all signals but
// those of their own faults, and of profilers, to other threads.
void leave_signals_to_others() {
  sigset_t set;
  sigfillset(&set);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF})
    sigdelset(&set, own);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace

// One worker's part in a call, linked to the calls around it on the same thread.
struct ThreadPool::Region {
  const ThreadPool* pool;
  int worker;
  int team;
  bool collective;
  const Region* outer;
};

thread_local const ThreadPool::Region* ThreadPool::innermost_ = nullptr;

struct alignas(64) ThreadPool::Scratch {
  std::byte* data = nullptr;
  size_t bytes = 0;

  ~Scratch() { ::operator delete[](data, kScratchAlignment); }
};

ThreadPool::ThreadPool(int workers)
    : workers_(workers), spins_(workers <= available_cores() ? kSpins : 0) {
  if (workers < 1 || workers > kMaxWorkers) {
    fail_f("a thread pool of {} workers: it needs 1 to {}", workers, kMaxWorkers);
  }
  scratch_ = std::make_unique<Scratch[]>(workers);
  try {
    for (int worker = 1; worker < workers; ++worker) {
      threads_.emplace_back([this, worker] { worker_loop(worker); });
    }
  } catch (const std::system_error& error) {
    stop();
    fail_f("cannot start {} threads: {}; set CRIA_THREADS to fewer", workers, error.what());
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  signal_.fetch_add(1u << kTeamBits, std::memory_order_release);
  signal_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

int ThreadPool::default_workers() {
  const char* text = std::getenv("CRIA_THREADS");
  if (!text || !*text) return std::min(available_cores(), kMaxWorkers);
  char* end = nullptr;
  long workers = std::strtol(text, &end, 10);
  if (*end || workers < 1 || workers > kMaxWorkers) {
    fail_f("CRIA_THREADS is '{}': set it to a number from 1 to {}, or unset it", text, kMaxWorkers);
  }
  return static_cast<int>(workers);
}

ThreadPool& ThreadPool::shared() {
  static ThreadPool pool(default_workers());
  return pool;
}

const ThreadPool::Region* ThreadPool::current_region() const {
  const Region* region = innermost_;
  while (region && region->pool != this) region = region->outer;
  return region;
}

void ThreadPool::dispatch(int team, bool collective, Work work, void* context) {
  FlushSubnormals flush;
  if (const Region* outer = current_region()) {
    Region region{this, outer->worker, 1, collective, innermost_};
    struct Restore {
      const Region* before = innermost_;
      ~Restore() { innermost_ = before; }
    } restore;
    innermost_ = &region;
    work(context, collective ? 0 : outer->worker, 1);
    return;
  }

  std::lock_guard lock(callers_);
  work_ = work;
  context_ = context;
  collective_ = collective;
  error_ = nullptr;
  arrived_.store(0, std::memory_order_relaxed);
  left_.store(0, std::memory_order_relaxed);
  failed_.store(false, std::memory_order_relaxed);
  if (team > 1) {
    unfinished_.store(team - 1, std::memory_order_relaxed);
    uint32_t count = (signal_.load(std::memory_order_relaxed) >> kTeamBits) + 1;
    signal_.store(count << kTeamBits | static_cast<uint32_t>(team), std::memory_order_release);
    signal_.notify_all();
  }
  work_on({this, 0, team, collective, innermost_});
  if (team > 1) wait_for_team();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::worker_loop(int worker) {
  leave_signals_to_others();
  FlushSubnormals flush;
  uint32_t seen = 0;
  while (true) {
    uint32_t signal = signal_.load(std::memory_order_acquire);
    for (int spin = 0; signal == seen && spin < spins_; ++spin) {
      cpu_relax();
      signal = signal_.load(std::memory_order_acquire);
    }
    if (signal == seen) {
      signal_.wait(seen, std::memory_order_acquire);
      continue;
    }
    seen = signal;
    if (stopping_.load(std::memory_order_relaxed)) return;
    int team = static_cast<int>(signal & kTeamMask);
    // A worker outside the team must not look at the region: the caller does not wait for it.
    if (worker >= team) continue;
    work_on({this, worker, team, collective_, nullptr});
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
  }
}

void ThreadPool::work_on(const Region& region) noexcept {
  innermost_ = &region;
  try {
    work_(context_, region.worker, region.team);
  } catch (const Abandoned&) {
  } catch (...) {
    keep_error();
  }
  innermost_ = region.outer;
  left_.fetch_add(1, std::memory_order_release);
}

void ThreadPool::keep_error() noexcept {
  std::lock_guard lock(error_mutex_);
  if (!error_) error_ = std::current_exception();
  failed_.store(true, std::memory_order_release);
}

void ThreadPool::wait_for_team() {
  int unfinished = unfinished_.load(std::memory_order_acquire);
  for (int spin = 0; unfinished > 0 && spin < spins_; ++spin) {
    cpu_relax();
    unfinished = unfinished_.load(std::memory_order_acquire);
  }
  while (unfinished > 0) {
    unfinished_.wait(unfinished, std::memory_order_acquire);
    unfinished = unfinished_.load(std::memory_order_acquire);
  }
}

void ThreadPool::pause() const {
  if (!current_region()) fail("ThreadPool::pause() works inside run() or parallel() only");
  if (failed_.load(std::memory_order_acquire)) throw Abandoned{};
  std::this_thread::yield();
}

void ThreadPool::barrier() {
  const Region* region = current_region();
  if (!region || !region->collective) fail("ThreadPool::barrier() works inside parallel() only");
  if (region->team == 1) return;

  uint32_t phase = phase_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == region->team) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    return;
  }
  for (int spin = 0; phase_.load(std::memory_order_acquire) == phase; ++spin) {
    if (failed_.load(std::memory_order_acquire)) throw Abandoned{};
    // Whoever has left passed this barrier, and then the phase has changed, or never will come.
    if (left_.load(std::memory_order_acquire) > 0 &&
        phase_.load(std::memory_order_acquire) == phase) {
      fail("a worker left ThreadPool::parallel() while others wait for it in barrier()");
    }
    if (spin < spins_) {
      cpu_relax();
    } else {
      std::this_thread::yield();
    }
  }
}

std::byte* ThreadPool::scratch(int worker, size_t bytes) {
  if (const Region* region = current_region()) worker = region->worker;
  require(worker >= 0 && worker < workers_, "ThreadPool::scratch(): there is no such worker");
  Scratch& own = scratch_[worker];
  if (bytes > own.bytes) {
    size_t rounded = (bytes + 4095) / 4096 * 4096;
    auto* data = static_cast<std::byte*>(::operator new[](rounded, kScratchAlignment));
    ::operator delete[](own.data, kScratchAlignment);
    own.data = data;
    own.bytes = rounded;
  }
  return own.data;
}

}  // namespace cria
