// Turns a kernel list into registry entries for the target of this translation unit, which the
// binding header included before this one (kernels/bind/) has chosen.
#pragma once

#include "kernels/list.h"
#include "runtime/kernel.h"

namespace cria::kernels {

struct VisitNothing {
  template <class T, class... Tag>
  constexpr void operator()(const char*, Tensor<T>&, Tag...) const {}
};

// What every kernel declares, with a sentence for what is missing.
template <class K>
constexpr void check_kernel() {
  static_assert(
      requires {
        typename K::Element;
        typename K::Config;
        typename K::Args;
      },
      "a kernel names its Element, its Config and its Args");
  using Args = typename K::Args;
  static_assert(
      requires { K::Config::name(); },
      "a kernel's Config needs a static name(): tuning, benchmarks and errors call it by that");
  static_assert(
      requires(Args a) { a.operands(VisitNothing{}); },
      "a kernel's Args needs operands(visit), which calls visit(\"name\", tensor) for each tensor");
  static_assert(
      requires(const Args& a) { a.dims(), a.cost(); }, "a kernel's Args needs dims() and cost()");
  static_assert(
      requires(const Args& a) { Grid(K::grid(a)), K::traits.threads; },
      "a kernel needs static Traits traits and Grid grid(const Args&)");
}

template <class K>
KernelConfig describe_config() {
  check_kernel<K>();
  using Args = typename K::Args;
  return {K::Config::name(),
          [](const void* args, int compute_capability) {
            const Args& a = *static_cast<const Args*>(args);
            if constexpr (requires { K::fits(a); })
              if (!K::fits(a)) return false;
            return Binding<K>::fits(a, compute_capability);
          },
          [](const void* args, int cores) {
            if constexpr (requires(const Args& a) { K::suits(a, cores); })
              return K::suits(*static_cast<const Args*>(args), cores);
            else
              return true;
          },
          [](void* context, const void* args) {
            Binding<K>::run(context, *static_cast<const Args*>(args));
          },
          [] { return Binding<K>::resources(); }};
}

template <template <class, class> class K, class T, class... Configs>
void instantiate_space(KernelRegistry& registry, KernelSpace<K, T, Configs...>) {
  using First = K<T, std::tuple_element_t<0, std::tuple<Configs...>>>;
  Kernel kernel{First::Args::kernel, dtype_of<T>, kBoundTarget, {}};
  const auto add = [&]<class C>(Type<C>) {
    if constexpr (Binding<K<T, C>>::wanted) kernel.configs.push_back(describe_config<K<T, C>>());
  };
  (add(Type<Configs>{}), ...);
  registry.add(std::move(kernel));
}

// A list may hold other lists.
template <class... Spaces>
void instantiate_space(KernelRegistry& registry, KernelList<Spaces...>) {
  (instantiate_space(registry, Spaces{}), ...);
}

template <class List>
void instantiate(KernelRegistry& registry) {
  instantiate_space(registry, List{});
}

}  // namespace cria::kernels
