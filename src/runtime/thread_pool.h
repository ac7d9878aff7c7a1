// The threads that CPU kernels run on. The caller works along as worker 0; all of them flush
// subnormals while they work. Between calls they poll briefly, giving way to whoever else wants the
// core, then sleep; no call allocates.
//
// A call of run() waits for nobody who has not begun: when no task is left it closes, and who comes
// too late, because another process has its core, stays out. Workers that lose their cores amid
// their tasks, again and again, are not called for a while (team_size.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "runtime/team_size.h"

namespace cria {

class ThreadPool {
 public:
  explicit ThreadPool(int workers);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The process's pool, of default_workers().
  static ThreadPool& shared();

  // CRIA_THREADS from the environment, else one for each core the process may use.
  static int default_workers();

  int workers() const { return workers_; }

  // How many of them calls are shared out among at present: fewer while the machine is busy.
  int team_size();

  // Calls f(task, worker) for every task in [0, tasks). A worker that takes a task finds all those
  // before it done or in the hands of workers that will do them in order. Rethrows the first
  // exception; tasks not begun by then are skipped. Inside another call it runs serially.
  template <class F>
  void run(int64_t tasks, F&& f);

  // Calls f(worker, workers) once on every worker, all at the same time, however busy the machine;
  // barrier() works inside. Inside another call there is one worker: f(0, 1).
  template <class F>
  void parallel(F&& f);

  // Within parallel(): waits until all workers have called it as often.
  void barrier();

  // Called again and again by a task that waits for what an earlier one does: lets others work, and
  // gives the task up if one has failed.
  void pause();

  // Memory of one worker, aligned to 64 bytes, for the duration of a task; only the worker itself
  // may ask. It keeps its largest size; growing loses the contents.
  std::byte* scratch(int worker, size_t bytes);

 private:
  using Work = void (*)(void* context, int worker, int team);
  struct Region;
  struct Worker;
  template <class F>
  struct TaskQueue;

  // Calls work(context, worker, team) on up to `team` workers, on all of them if it is collective;
  // on one, if inside a call already.
  void dispatch(int team, bool collective, Work work, void* context);
  void worker_loop(int worker);
  void stop();
  void ring();
  void open(int team);
  int close();
  void work_on(const Region& region) noexcept;
  void keep_error() noexcept;
  void announce() noexcept;
  void wait_for(int workers);
  template <class F>
  void wait_watched(F&& wait);
  const Region* current_region() const;

  static thread_local const Region* innermost_;

  const int workers_;
  const int spins_;  // polls before sleeping
  std::unique_ptr<Worker[]> own_;
  std::vector<std::thread> threads_;
  std::mutex callers_;  // one region at a time
  TeamSize team_size_;  // the caller's

  // The region in progress. Only who has entered it reads these, and the caller waits for those.
  Work work_ = nullptr;
  void* context_ = nullptr;
  bool collective_ = false;
  std::exception_ptr error_;
  std::mutex error_mutex_;

  alignas(64) std::atomic<uint64_t> gate_{0};  // into the region: see thread_pool.cpp
  std::atomic<uint32_t> bell_{0};              // changes when sleepers should look
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<int> left_{0};     // workers that were in the region, besides the caller
  alignas(64) std::atomic<int> arrived_{0};  // at the barrier
  std::atomic<uint32_t> phase_{0};           // barriers passed
  std::atomic<uint32_t> news_{0};            // counts what those in the barrier must look at
  std::atomic<bool> deserted_{false};        // somebody has left a collective region
  std::atomic<bool> failed_{false};
};

// Hands out tasks in chunks, each a share of those that are left: large at first, and so small in
// the end that all workers finish together.
template <class F>
struct ThreadPool::TaskQueue {
  F& f;
  const int64_t tasks;
  alignas(64) std::atomic<int64_t> next{0};

  static void work(void* context, int worker, int team) {
    auto& queue = *static_cast<TaskQueue*>(context);
    try {
      while (true) {
        int64_t begin = queue.next.load(std::memory_order_relaxed), chunk;
        do {
          if (begin >= queue.tasks) return;
          chunk = std::max<int64_t>(1, (queue.tasks - begin) / (4 * team));
        } while (
            !queue.next.compare_exchange_weak(begin, begin + chunk, std::memory_order_relaxed));
        for (int64_t task = begin; task < begin + chunk; ++task) queue.f(task, worker);
      }
    } catch (...) {
      queue.next.store(queue.tasks, std::memory_order_relaxed);
      throw;
    }
  }
};

template <class F>
void ThreadPool::run(int64_t tasks, F&& f) {
  if (tasks <= 0) return;
  using Function = std::remove_reference_t<F>;
  TaskQueue<Function> queue{f, tasks};
  int team = static_cast<int>(std::min<int64_t>(tasks, workers_));
  dispatch(team, false, TaskQueue<Function>::work, &queue);
}

template <class F>
void ThreadPool::parallel(F&& f) {
  using Function = std::remove_reference_t<F>;
  auto work = [](void* context, int worker, int team) {
    (*static_cast<Function*>(context))(worker, team);
  };
  dispatch(workers_, true, work, const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

}  // namespace cria
