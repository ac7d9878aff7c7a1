// From a kernel struct to running programs on the cores of an executor: runtime's ThreadPool, or
// anything with run(tasks, f(task, worker)), parallel(f(worker, workers)), barrier(), pause() and
// scratch(worker, bytes).
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "tile/cpu/program_host.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

template <class K>
using Program = ProgramHost<K, NoProbe>;

template <class K, class Executor>
void launch(Executor& executor, const typename K::Args& args) {
  const Grid grid = K::grid(args);
  require(grid.valid(), "a kernel's grid asks for a negative number of programs");
  if (grid.programs() == 0) return;
  if constexpr (K::traits.cooperative) {
    executor.parallel([&](int worker, int workers) {
      const LaunchState state{
          .programs = {workers, 1, 1},
          .barrier = [](void* context) { static_cast<Executor*>(context)->barrier(); },
          .context = &executor};
      run_program<Program<K>, K>(args, state, worker, executor.scratch(worker, scratch_bytes<K>()));
      stream_fence();
    });
  } else {
    // Neighbouring programs run on one core, in batches that still leave enough tasks to share out.
    // A persistent kernel has a program for each tile, so that no core need be there for its share.
    constexpr int64_t kTasks = 1024;
    const int64_t programs = grid.programs(), batch = (programs + kTasks - 1) / kTasks;
    const LaunchState state{
        .programs = grid,
        .pause = [](void* context) { static_cast<Executor*>(context)->pause(); },
        .context = &executor};
    executor.run((programs + batch - 1) / batch, [&](int64_t task, int worker) {
      std::byte* scratch = executor.scratch(worker, scratch_bytes<K>());
      const int64_t end = std::min(programs, (task + 1) * batch);
      for (int64_t i = task * batch; i < end; ++i)
        run_program<Program<K>, K>(args, state, i, scratch);
      stream_fence();
    });
  }
}

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
