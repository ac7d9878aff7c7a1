#include "runtime/thread_pool.h"

#include <pthread.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <new>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "runtime/cpu/cores.h"
#include "runtime/cpu/float_mode.h"

namespace cria {
namespace {

using Clock = TeamSize::Clock;

// The word that lets workers into a region: its number, how many may enter (none: it is closed),
// and how many have. A worker enters, or finds that it is too late, in one exchange.
constexpr int kCountBits = 12;
constexpr uint64_t kCountMask = (1u << kCountBits) - 1;
constexpr int kMaxWorkers = 1024;
static_assert(kMaxWorkers <= static_cast<int>(kCountMask));
constexpr int entered(uint64_t gate) { return static_cast<int>(gate & kCountMask); }
constexpr int team(uint64_t gate) { return static_cast<int>(gate >> kCountBits & kCountMask); }
constexpr uint64_t number(uint64_t gate) { return gate >> 2 * kCountBits; }
constexpr uint64_t next_region(uint64_t gate, int team) {
  return (number(gate) + 1) << 2 * kCountBits | static_cast<uint64_t>(team) << kCountBits;
}

// About 50 us of `pause`: longer than the gap between two launches of a step.
constexpr int kSpins = 2000;
// A worker that polls offers its core to others this often: it costs nothing where there are none.
constexpr int kSpinsToYield = 32;

// A caller that has waited for its workers for as long looks whether they run.
constexpr int kSpinsToWatch = 100;

constexpr std::chrono::microseconds kNap{20};

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

// How long a thread has run.
Clock::duration time_run(std::thread& thread) {
  clockid_t clock;
  timespec time{};
  if (pthread_getcpuclockid(thread.native_handle(), &clock) != 0) return {};
  clock_gettime(clock, &time);
  return std::chrono::duration_cast<Clock::duration>(std::chrono::seconds(time.tv_sec) +
                                                     std::chrono::nanoseconds(time.tv_nsec));
}

}  // namespace

// One worker's part in a call, linked to the calls around it on the same thread.
struct ThreadPool::Region {
  const ThreadPool* pool;
  int worker;
  int team;
  bool collective;
  const Region* outer;
  mutable int pauses = 0;
};

thread_local const ThreadPool::Region* ThreadPool::innermost_ = nullptr;

// What belongs to one worker.
struct alignas(64) ThreadPool::Worker {
  std::byte* scratch = nullptr;
  size_t bytes = 0;
  std::atomic<bool> working{false};
  Clock::duration run_before{};  // the caller's note, while it waits

  ~Worker() { ::operator delete[](scratch, kScratchAlignment); }
};

ThreadPool::ThreadPool(int workers)
    : workers_(workers), spins_(workers <= available_cores() ? kSpins : 0), team_size_(workers) {
  if (workers < 1 || workers > kMaxWorkers) {
    fail_f("a thread pool of {} workers: it needs 1 to {}", workers, kMaxWorkers);
  }
  own_ = std::make_unique<Worker[]>(workers);
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
  ring();
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

int ThreadPool::team_size() {
  std::lock_guard lock(callers_);
  return team_size_.size();
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
  if (!collective && team_size_.reduced()) team = std::min(team, team_size_.size_at(Clock::now()));
  work_ = work;
  context_ = context;
  collective_ = collective;
  error_ = nullptr;
  arrived_.store(0, std::memory_order_relaxed);
  left_.store(0, std::memory_order_relaxed);
  deserted_.store(false, std::memory_order_relaxed);
  failed_.store(false, std::memory_order_relaxed);
  if (team > 1) open(team);
  work_on({this, 0, team, collective, innermost_});
  if (team > 1) {
    // All of a collective region's workers must come, and nobody else's.
    wait_for(collective ? team - 1 : close());
    if (collective) close();
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::open(int team) {
  gate_.store(next_region(gate_.load(std::memory_order_relaxed), team), std::memory_order_release);
  ring();
}

void ThreadPool::ring() {
  bell_.store(bell_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  bell_.notify_all();
}

// How many have entered.
int ThreadPool::close() {
  return entered(gate_.fetch_and(~(kCountMask << kCountBits), std::memory_order_acq_rel));
}

void ThreadPool::worker_loop(int worker) {
  leave_signals_to_others();
  FlushSubnormals flush;
  uint64_t last = 0;  // the region it was in; the first one's number is 1
  int spin = 0;
  while (true) {
    const uint32_t bell = bell_.load(std::memory_order_acquire);
    uint64_t gate = gate_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    if (worker < team(gate) && number(gate) != last) {
      if (!gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel)) continue;
      last = number(gate);
      work_on({this, worker, team(gate), collective_, nullptr});
      left_.fetch_add(1, std::memory_order_release);
      left_.notify_one();
      spin = 0;
    } else if (spin < spins_) {
      cpu_relax();
      if (++spin % kSpinsToYield == 0) std::this_thread::yield();
    } else {
      bell_.wait(bell, std::memory_order_acquire);
      spin = 0;
    }
  }
}

void ThreadPool::work_on(const Region& region) noexcept {
  std::atomic<bool>& working = own_[region.worker].working;
  working.store(true, std::memory_order_relaxed);
  innermost_ = &region;
  try {
    work_(context_, region.worker, region.team);
  } catch (const Abandoned&) {
  } catch (...) {
    keep_error();
  }
  innermost_ = region.outer;
  if (region.collective) {
    deserted_.store(true, std::memory_order_release);
    announce();
  }
  working.store(false, std::memory_order_relaxed);
}

void ThreadPool::keep_error() noexcept {
  std::lock_guard lock(error_mutex_);
  if (!error_) error_ = std::current_exception();
  failed_.store(true, std::memory_order_release);
}

void ThreadPool::announce() noexcept {
  news_.fetch_add(1, std::memory_order_release);
  news_.notify_all();
}

// The caller waits until so many workers have left the region.
void ThreadPool::wait_for(int workers) {
  int left = left_.load(std::memory_order_acquire);
  const auto spin = [&](int spins) {
    for (int i = 0; left < workers && i < spins; ++i) {
      cpu_relax();
      left = left_.load(std::memory_order_acquire);
    }
  };
  spin(std::min(spins_, kSpinsToWatch));
  if (left == workers) return;
  wait_watched([&] {
    spin(spins_);
    while (left < workers) {
      left_.wait(left, std::memory_order_acquire);
      left = left_.load(std::memory_order_acquire);
    }
  });
}

// wait(), in the caller; when none of those at work ran as long as that, the rest was lost.
template <class F>
void ThreadPool::wait_watched(F&& wait) {
  for (int worker = 1; worker < workers_; ++worker) {
    Worker& other = own_[worker];
    other.run_before = Clock::duration(-1);
    if (other.working.load(std::memory_order_relaxed))
      other.run_before = time_run(threads_[worker - 1]);
  }
  const auto start = Clock::now();
  wait();
  const auto end = Clock::now();
  Clock::duration run{};
  for (int worker = 1; worker < workers_; ++worker) {
    const Worker& other = own_[worker];
    if (other.run_before >= Clock::duration{0})
      run = std::max(run, time_run(threads_[worker - 1]) - other.run_before);
  }
  if (end - start > run) team_size_.lost(end - start - run, end);
}

void ThreadPool::pause() {
  const Region* region = current_region();
  if (!region) fail("ThreadPool::pause() works inside run() or parallel() only");
  if (failed_.load(std::memory_order_acquire)) throw Abandoned{};
  if (region->pauses < spins_) {
    ++region->pauses;
    cpu_relax();
  } else if (region->worker == 0) {
    wait_watched([] { std::this_thread::sleep_for(kNap); });
  } else {
    std::this_thread::sleep_for(kNap);
  }
}

void ThreadPool::barrier() {
  const Region* region = current_region();
  if (!region || !region->collective) fail("ThreadPool::barrier() works inside parallel() only");
  if (region->team == 1) return;

  const uint32_t phase = phase_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == region->team) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    announce();
    return;
  }
  for (int spin = 0;; ++spin) {
    const uint32_t news = news_.load(std::memory_order_acquire);
    if (phase_.load(std::memory_order_acquire) != phase) return;
    if (failed_.load(std::memory_order_acquire)) throw Abandoned{};
    // Whoever has left passed this barrier, and then the phase has changed, or never will come.
    if (deserted_.load(std::memory_order_acquire) &&
        phase_.load(std::memory_order_acquire) == phase) {
      fail("a worker left ThreadPool::parallel() while others wait for it in barrier()");
    }
    if (spin < spins_) {
      cpu_relax();
    } else {
      news_.wait(news, std::memory_order_acquire);
    }
  }
}

std::byte* ThreadPool::scratch(int worker, size_t bytes) {
  if (const Region* region = current_region()) worker = region->worker;
  require(worker >= 0 && worker < workers_, "ThreadPool::scratch(): there is no such worker");
  Worker& own = own_[worker];
  if (bytes > own.bytes) {
    size_t rounded = (bytes + 4095) / 4096 * 4096;
    auto* data = static_cast<std::byte*>(::operator new[](rounded, kScratchAlignment));
    ::operator delete[](own.scratch, kScratchAlignment);
    own.scratch = data;
    own.bytes = rounded;
  }
  return own.scratch;
}

}  // namespace cria
