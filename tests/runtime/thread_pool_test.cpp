#include "runtime/thread_pool.h"

#include <pthread.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "on_device.h"
#include "runtime/cpu/cores.h"

namespace cria {
namespace {

using test::expect_error;

class ThreadPoolTest : public ::testing::TestWithParam<int> {
 protected:
  ThreadPool pool{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Workers, ThreadPoolTest, ::testing::Values(1, 2, 3, 8));

TEST_P(ThreadPoolTest, RunsEveryTaskOnce) {
  for (int64_t tasks : {0, 1, 2, 3, 7, 8, 9, 255, 100000}) {
    std::vector<int> count(tasks, 0);
    pool.run(tasks, [&](int64_t task, int worker) {
      EXPECT_GE(worker, 0);
      EXPECT_LT(worker, pool.workers());
      ++count[task];
    });
    EXPECT_EQ(count, std::vector<int>(tasks, 1)) << tasks;
  }
  pool.run(-3, [](int64_t, int) { FAIL(); });
}

TEST_P(ThreadPoolTest, ManyShortRuns) {
  std::vector<int64_t> sums(pool.workers() * 16, 0);  // one cache line each
  for (int i = 0; i < 3000; ++i) {
    pool.run(i % 5, [&](int64_t task, int worker) { sums[worker * 16] += task + 1; });
  }
  int64_t want = 600 * (1 + 3 + 6 + 10);
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), int64_t{0}), want);
}

TEST_P(ThreadPoolTest, RunsAfterSleeping) {
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    std::atomic<int> count = 0;
    pool.run(10, [&](int64_t, int) { ++count; });
    EXPECT_EQ(count, 10);
  }
}

TEST_P(ThreadPoolTest, ExceptionsReachTheCaller) {
  for (int round = 0; round < 50; ++round) {
    try {
      pool.run(100, [&](int64_t task, int) {
        if (task % 10 == 3) throw std::runtime_error("task failed");
      });
      FAIL() << "nothing thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "task failed");
    }
    std::atomic<int> count = 0;
    pool.run(100, [&](int64_t, int) { ++count; });
    EXPECT_EQ(count, 100);
  }
}

TEST_P(ThreadPoolTest, TasksNotBegunAreSkippedAfterAFailure) {
  std::atomic<int> begun = 0;
  EXPECT_THROW(pool.run(1000000,
                        [&](int64_t, int) {
                          ++begun;
                          throw std::runtime_error("first");
                        }),
               std::runtime_error);
  EXPECT_LE(begun, pool.workers());
}

TEST_P(ThreadPoolTest, NestedRunsAreSerial) {
  std::vector<std::atomic<int>> count(40);
  pool.run(4, [&](int64_t outer, int outer_worker) {
    auto thread = std::this_thread::get_id();
    pool.run(10, [&](int64_t inner, int inner_worker) {
      EXPECT_EQ(std::this_thread::get_id(), thread);
      EXPECT_EQ(inner_worker, outer_worker);
      ++count[outer * 10 + inner];
    });
    EXPECT_THROW(pool.run(3, [](int64_t, int) { throw std::logic_error("inner"); }),
                 std::logic_error);
  });
  for (auto& c : count) EXPECT_EQ(c, 1);
}

TEST_P(ThreadPoolTest, NestedParallelHasOneWorker) {
  std::atomic<int> calls = 0;
  pool.run(6, [&](int64_t, int outer_worker) {
    std::byte* own = pool.scratch(outer_worker, 64);
    pool.parallel([&](int worker, int workers) {
      EXPECT_EQ(worker, 0);
      EXPECT_EQ(workers, 1);
      pool.barrier();
      EXPECT_EQ(pool.scratch(worker, 64), own);
      ++calls;
    });
  });
  EXPECT_EQ(calls, 6);
}

TEST_P(ThreadPoolTest, ParallelRunsOnceOnEveryWorker) {
  std::vector<std::thread::id> ids(pool.workers());
  pool.parallel([&](int worker, int workers) {
    EXPECT_EQ(workers, pool.workers());
    ids[worker] = std::this_thread::get_id();
  });
  EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), ids.size());
  EXPECT_EQ(ids[0], std::this_thread::get_id());
}

// In each phase a worker writes its slot and, after the barrier, reads its neighbour's.
TEST_P(ThreadPoolTest, BarrierSeparatesPhases) {
  const int phases = 300;
  std::vector<int> slot(pool.workers(), -1);
  std::atomic<int> wrong = 0;
  pool.parallel([&](int worker, int workers) {
    for (int phase = 0; phase < phases; ++phase) {
      slot[worker] = phase;
      pool.barrier();
      if (slot[(worker + 1) % workers] != phase) ++wrong;
      pool.barrier();
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST_P(ThreadPoolTest, AFailedWorkerFreesThoseInTheBarrier) {
  for (int round = 0; round < 20; ++round) {
    int thrower = round % pool.workers();
    expect_error(
        [&] {
          pool.parallel([&](int worker, int) {
            pool.barrier();
            if (worker == thrower) fail("worker gave up");
            pool.barrier();
            pool.barrier();
          });
        },
        "worker gave up");
  }
}

TEST_P(ThreadPoolTest, MissingABarrierIsAnError) {
  if (pool.workers() == 1) return;
  expect_error(
      [&] {
        pool.parallel([&](int worker, int) {
          if (worker != 0) pool.barrier();
        });
      },
      "left ThreadPool::parallel()");
}

TEST_P(ThreadPoolTest, BarrierIsForParallelOnly) {
  expect_error([&] { pool.barrier(); }, "inside parallel() only");
  expect_error([&] { pool.run(2, [&](int64_t, int) { pool.barrier(); }); },
               "inside parallel() only");
}

TEST_P(ThreadPoolTest, CallersTakeTurns) {
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum = 0;
  std::vector<std::atomic<int>> busy(pool.workers());
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        pool.run(8, [&](int64_t task, int worker) {
          EXPECT_EQ(busy[worker].fetch_add(1), 0);
          sum += task;
          busy[worker].fetch_sub(1);
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 3 * 200 * 28);
}

TEST_P(ThreadPoolTest, ScratchBelongsToItsWorker) {
  std::vector<std::byte*> at(pool.workers());
  for (size_t bytes : {1, 100, 5000, 300}) {
    pool.parallel([&](int worker, int) {
      at[worker] = pool.scratch(worker, bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(at[worker]) % 64, 0u);
      std::fill(at[worker], at[worker] + bytes, std::byte(worker));
      pool.barrier();
      EXPECT_EQ(at[worker][bytes - 1], std::byte(worker));
      EXPECT_EQ(pool.scratch(worker, 1), at[worker]);
    });
    EXPECT_EQ(std::set(at.begin(), at.end()).size(), at.size());
  }
  expect_error([&] { pool.scratch(pool.workers(), 1); }, "no such worker");
}

TEST_P(ThreadPoolTest, FlushesSubnormalsWhileItWorks) {
#if !defined(__SSE2__)
  GTEST_SKIP() << "subnormals are flushed on x86 only";
#endif
  volatile float tiny = std::numeric_limits<float>::min();
  volatile float subnormal = std::numeric_limits<float>::denorm_min();
  auto flushed = [&] { return tiny * 0.5f == 0.0f && subnormal * 1e30f == 0.0f; };
  EXPECT_FALSE(flushed());
  std::atomic<int> count = 0;
  pool.parallel([&](int, int) { count += flushed(); });
  EXPECT_EQ(count, pool.workers());
  EXPECT_FALSE(flushed());
  pool.run(1, [&](int64_t, int) { EXPECT_TRUE(flushed()); });
  EXPECT_THROW(pool.run(1, [](int64_t, int) { throw 1; }), int);
  EXPECT_FALSE(flushed());
}

// Keeps a pool's workers, all or one, from running, as a scheduler does whose cores are taken: in
// the handler of a signal that workers leave open for profilers. They go on when this ends, or after
// `patience`, so that a pool that waits for them is slow and not stuck.
class Unscheduled {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Unscheduled(std::vector<pthread_t> threads,
                       Clock::duration patience = std::chrono::seconds(3)) {
    struct sigaction action {};
    action.sa_handler = [](int) {
      const int error = errno;
      held_.fetch_add(1);
      while (!released_.load() && Clock::now() < until_.load()) {
        const timespec nap{.tv_sec = 0, .tv_nsec = 100'000};
        nanosleep(&nap, nullptr);
      }
      held_.fetch_sub(1);
      errno = error;
    };
    sigaction(SIGPROF, &action, &before_);
    released_ = false;
    until_ = Clock::now() + patience;
    for (const pthread_t thread : threads) pthread_kill(thread, SIGPROF);
    while (held_ < static_cast<int>(threads.size())) std::this_thread::yield();
  }
  ~Unscheduled() {
    release();
    while (held_ > 0) std::this_thread::yield();
    sigaction(SIGPROF, &before_, nullptr);
  }
  Unscheduled(const Unscheduled&) = delete;
  Unscheduled& operator=(const Unscheduled&) = delete;

  void release() { released_ = true; }
  static bool in_time() { return Clock::now() < until_.load(); }

 private:
  static inline std::atomic<int> held_ = 0;
  static inline std::atomic<bool> released_ = false;
  static inline std::atomic<Clock::time_point> until_;
  struct sigaction before_ {};
};

// Those besides the caller.
std::vector<pthread_t> threads_of(ThreadPool& pool) {
  std::vector<pthread_t> threads(pool.workers());
  pool.parallel([&](int worker, int) { threads[worker] = pthread_self(); });
  threads.erase(threads.begin());
  return threads;
}

double cpu_seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

TEST_P(ThreadPoolTest, WorkersThatDoNotRunAreNotWaitedFor) {
  const auto threads = threads_of(pool);
  const int team = pool.team_size();
  for (const bool asleep : {true, false}) {
    if (asleep) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const Unscheduled others(threads);
    for (int i = 0; i < 1000; ++i) {
      int64_t sum = 0;
      pool.run(100, [&](int64_t task, int worker) {
        EXPECT_EQ(worker, 0);
        sum += task;
      });
      EXPECT_EQ(sum, 4950);
    }
    EXPECT_TRUE(others.in_time()) << "run() has waited for workers that could not come";
  }
  EXPECT_GE(pool.team_size(), team) << "who has not begun costs nothing";
  std::atomic<int> count = 0;  // back at work, all of them
  pool.parallel([&](int, int) { ++count; });
  EXPECT_EQ(count, pool.workers());
}

// What a worker has begun must be waited for; if that takes long, one worker less is called.
TEST_P(ThreadPoolTest, AWorkerThatStopsAmidATaskIsLeftOutForAWhile) {
  if (pool.workers() == 1) return;
  std::atomic<bool> begun = false;
  std::atomic<int> done = 0;
  pool.run(2, [&](int64_t, int worker) {
    if (worker == 0) {
      while (!begun) std::this_thread::yield();
      return void(++done);
    }
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // it does not run
    ++done;
  });
  EXPECT_EQ(done, 2);
  EXPECT_EQ(pool.team_size(), pool.workers() - 1);
  std::this_thread::sleep_for(TeamSize::kLongest);
  pool.run(100, [](int64_t, int) {});
  EXPECT_EQ(pool.team_size(), pool.workers());
}

TEST_P(ThreadPoolTest, AWorkerThatIsBusyForLongIsNoneThatDoesNotRun) {
  if (pool.workers() == 1) return;
  int undisturbed = 0;
  for (int attempt = 0; attempt < 10; ++attempt) {
    ThreadPool fresh(pool.workers());
    std::atomic<bool> begun = false;
    double off_core = 0;
    fresh.run(2, [&](int64_t, int worker) {
      if (worker > 0) begun = true;
      while (!begun) std::this_thread::yield();
      if (worker == 0) return;
      const auto time = [] { return std::chrono::steady_clock::now().time_since_epoch(); };
      const auto start = time();
      const double ran = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
      while (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) < ran + 0.01) continue;
      off_core = std::chrono::duration<double>(time() - start).count() - 0.01;
    });
    if (fresh.team_size() == fresh.workers()) return;
    undisturbed += off_core < 1e-3;  // up to here, but it may have been kept from leaving
  }
  if (undisturbed < 5) GTEST_SKIP() << "the machine is too busy for a thread to run for 10 ms";
  FAIL() << "workers that were at work for 10 ms were taken for stopped";
}

// The caller's own time while a worker sleeps in its task, before its barrier, or before it lets a
// later task go on.
TEST(ThreadPool, NothingWaitsBySpinning) {
  ThreadPool pool(2);
  const auto nap = [] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); };
  const auto expect_idle = [](const char* what, auto&& work) {
    const double start = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
    work();
    EXPECT_LT(cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - start, 0.1) << what;
  };
  expect_idle("the end of parallel()", [&] {
    pool.parallel([&](int worker, int) {
      if (worker == 1) nap();
    });
  });
  for (const int late : {0, 1})
    expect_idle("barrier()", [&] {
      pool.parallel([&](int worker, int) {
        if (worker == late) nap();
        pool.barrier();
      });
    });
  expect_idle("pause()", [&] {
    std::atomic<bool> ready = false;
    pool.run(2, [&](int64_t task, int) {
      if (task == 0) {
        nap();
        ready = true;
      }
      while (!ready) pool.pause();
    });
  });
}

TEST(ThreadPool, TwoPoolsNest) {
  ThreadPool outer(2), inner(2);
  std::atomic<int> count = 0;
  outer.run(4, [&](int64_t, int) {
    inner.run(4, [&](int64_t, int) { ++count; });
    outer.run(4, [&](int64_t, int) { ++count; });
  });
  EXPECT_EQ(count, 32);
}

TEST(ThreadPool, NeedsAWorker) {
  expect_error([] { ThreadPool pool(0); }, "it needs 1 to");
  expect_error([] { ThreadPool pool(100000); }, "it needs 1 to");
}

TEST(ThreadPool, ObeysTheEnvironment) {
  const char* before = std::getenv("CRIA_THREADS");
  const std::string saved = before ? before : "";
  setenv("CRIA_THREADS", "3", 1);
  EXPECT_EQ(ThreadPool::default_workers(), 3);
  for (const char* bad : {"0", "-1", "many", "2x", "99999999999"}) {
    setenv("CRIA_THREADS", bad, 1);
    expect_error([] { ThreadPool::default_workers(); }, "CRIA_THREADS");
  }
  unsetenv("CRIA_THREADS");
  EXPECT_EQ(ThreadPool::default_workers(), available_cores());
  if (before) setenv("CRIA_THREADS", saved.c_str(), 1);
  EXPECT_EQ(&ThreadPool::shared(), &ThreadPool::shared());
  EXPECT_GE(ThreadPool::shared().workers(), 1);
}

}  // namespace
}  // namespace cria
