#include "runtime/kernel.h"

#include <algorithm>

#include "base/error.h"

namespace cria {
namespace {

const char* name_of(Target target) {
  return target == Target::cpu ? "cpu" : target == Target::cuda ? "cuda" : "trace";
}

}  // namespace

const KernelConfig& Kernel::config(std::string_view wanted) const {
  std::string names;
  for (const KernelConfig& c : configs) {
    if (c.name == wanted) return c;
    names += (names.empty() ? "" : ", ") + c.name;
  }
  fail(name + " has no configuration '" + std::string(wanted) + "'; it has " + names);
}

std::vector<const KernelConfig*> Kernel::fitting(const void* args, int compute_capability) const {
  std::vector<const KernelConfig*> out;
  for (const KernelConfig& c : configs)
    if (c.fits(args, compute_capability)) out.push_back(&c);
  return out;
}

void KernelRegistry::add(Kernel kernel) {
  if (find(kernel.name, kernel.dtype, kernel.target))
    fail("two kernels are called " + kernel.name + " (" + cria::name_of(kernel.dtype) + ", " +
         name_of(kernel.target) + "): rename one");
  for (auto c = kernel.configs.begin(); c != kernel.configs.end(); ++c)
    if (std::any_of(kernel.configs.begin(), c, [&](const auto& d) { return d.name == c->name; }))
      fail(kernel.name + " has two configurations called " + c->name + ": give each its own name");
  kernels_.push_back(std::move(kernel));
}

const Kernel* KernelRegistry::find(std::string_view name, DType dtype, Target target) const {
  const auto found = std::find_if(kernels_.begin(), kernels_.end(), [&](const Kernel& k) {
    return k.name == name && k.dtype == dtype && k.target == target;
  });
  return found == kernels_.end() ? nullptr : &*found;
}

const Kernel& KernelRegistry::get(std::string_view name, DType dtype, Target target) const {
  if (const Kernel* kernel = find(name, dtype, target)) return *kernel;
  const bool known = std::ranges::any_of(kernels_, [&](const Kernel& k) { return k.name == name; });
  const std::string build_all =
      partial_ ? "; `make run` built only what the tour needs, and `make build` builds the rest"
               : "";
  if (!known)
    fail("there is no kernel " + std::string(name) +
         " in this registry; a target with kernels of its own has one of its own, to be given to "
         "launch()" +
         build_all);
  std::string others;
  for (const Kernel& k : kernels_)
    if (k.name == name && k.target == target)
      others += (others.empty() ? "" : ", ") + std::string(cria::name_of(k.dtype));
  fail("kernel " + std::string(name) + " is not built for " + cria::name_of(dtype) + " on " +
       name_of(target) + (others.empty() ? std::string() : "; it is for " + others) + build_all);
}

const KernelRegistry& kernel_registry() {
  static const KernelRegistry registry(register_all_kernels);
  return registry;
}

}  // namespace cria
