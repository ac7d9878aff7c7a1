// Kernels as values: what was compiled, for which type and target, in which configurations, and how
// to run each. Filled once by the kernel translation units; everything that lists kernels reads
// this.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/cost.h"
#include "base/dims.h"
#include "base/dtype.h"
#include "runtime/stream.h"

namespace cria {

enum class Target { cpu, cuda, trace };

inline Target target_of(Device device) {
  return device.backend == Backend::cuda ? Target::cuda : Target::cpu;
}

// What the compiler and the driver say about a compiled kernel; zeros where they say nothing.
struct KernelResources {
  int registers = 0;        // per thread at launch
  int local_bytes = 0;      // per thread: spills and indexed arrays
  int shared_bytes = 0;     // per program, static and dynamic
  int threads = 0;          // per program
  int blocks_per_core = 0;  // resident programs per multiprocessor
};

// One configuration of a kernel. `args` points to the kernel's Args struct throughout.
struct KernelConfig {
  std::string name;
  bool (*fits)(const void* args, int compute_capability);
  bool (*suits)(const void* args, int cores);    // whether it is a good choice, if it fits
  void (*run)(void* context, const void* args);  // a Stream*; for Target::trace the trace's sink
  KernelResources (*resources)();
};

struct Kernel {
  std::string name;
  DType dtype = DType::f32;
  Target target = Target::cpu;
  std::vector<KernelConfig> configs;  // first choice first

  // The named configuration; an Error that lists the names when there is none.
  const KernelConfig& config(std::string_view name) const;
  // Those that can run these arguments on a device of this compute capability, in order.
  std::vector<const KernelConfig*> fitting(const void* args, int compute_capability) const;
};

class KernelRegistry {
 public:
  KernelRegistry() = default;
  explicit KernelRegistry(void (*fill)(KernelRegistry&)) { fill(*this); }

  void add(Kernel kernel);  // an Error when there is one of that name, type and target already
  void mark_partial() { partial_ = true; }  // the build left out what the tour does not need
  const std::vector<Kernel>& all() const { return kernels_; }
  const Kernel* find(std::string_view name, DType dtype, Target target) const;
  // An Error that says what there is instead, when there is no such kernel.
  const Kernel& get(std::string_view name, DType dtype, Target target) const;

 private:
  std::vector<Kernel> kernels_;
  bool partial_ = false;
};

// Defined by the build from its list of kernels.
void register_all_kernels(KernelRegistry& registry);

// All kernels of cria. Those of another program or library are in a registry of their own, which
// cria_kernels() in its CMakeLists.txt makes.
const KernelRegistry& kernel_registry();

}  // namespace cria
