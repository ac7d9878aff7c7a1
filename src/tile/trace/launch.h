// trace<K>(args, trace): runs a kernel's programs one after the other and records every access.
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <string>

#include "tile/aligned.h"
#include "tile/trace/recorder.h"
#include "tile/trace/relocation.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

template <class K>
using Program = ProgramHost<K, Recorder>;

template <class K>
std::string kernel_name() {
  if constexpr (requires { K::Args::kernel; }) {
    return K::Args::kernel;
  } else {  // "... [with K = Name; ...]"
    const std::string text = __PRETTY_FUNCTION__;
    const size_t begin = text.find("K = ") + 4;
    return text.substr(begin, text.find_first_of(";]", begin) - begin);
  }
}

// Programs as one wave of a GPU would run them. A kernel with grid-wide barriers runs as one
// program that takes all tiles, because programs here do not run at the same time.
template <class K>
Grid traced_grid(const typename K::Args& args, const TraceOptions& options) {
  Grid grid = K::grid(args);
  require(grid.valid(), "a kernel's grid asks for a negative number of programs");
  if (grid.programs() == 0) return {0};
  if (K::traits.cooperative) return {1};
  if (K::traits.persistent) grid.x = std::min<int64_t>(grid.x, options.resident_programs);
  return grid;
}

template <class Args>
OperandTable operand_table(Args args) {
  OperandTable table;
  args.operands([&](const char* name, auto& t, auto...) { table.add(name, t); });
  return table;
}

// The operands hold the kernel's results afterwards; an Error leaves them as they were.
template <class K>
void trace(const typename K::Args& args, Trace& trace) {
  const Relocation relocation(operand_table(args));
  typename K::Args moved = args;
  moved.operands([&](const char*, auto& t, auto...) {
    if (t.size() == 0) return;
    t.data =
        reinterpret_cast<decltype(t.data)>(relocation.moved(reinterpret_cast<uint64_t>(t.data)));
  });
  const TraceOptions& options = trace.options();
  const Grid grid = traced_grid<K>(args, options);
  trace.begin(kernel_name<K>(), operand_table(moved), grid.x, grid.y);

  Recording recording{trace, K::traits.threads, K::traits.lowering, access_for<K>(args)};
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  const std::unique_ptr<std::byte[], Free> scratch(new (std::align_val_t{64})
                                                       std::byte[scratch_bytes<K>() + 1]);
  const LaunchState state{grid};
  const int64_t first = std::min(options.first_program, grid.programs());
  const int64_t count = std::min(options.program_limit, grid.programs() - first);
  for (int64_t i = first; i < first + count; ++i) {
    recording.program = i;
    recording.fetched.clear();
    run_program<Program<K>, K>(moved, state, i, scratch.get(), Recorder(&recording));
  }
  relocation.restore();
}

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
