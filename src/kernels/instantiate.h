// Turns a kernel list into registry entries for the target of this translation unit, which the binding
// header included before this one (kernels/bind/) has chosen.
#pragma once

#include "kernels/list.h"
#include "runtime/kernel.h"

namespace cria::kernels {

template <class K>
KernelConfig describe_config() {
  using Args = typename K::Args;
  return {K::Config::name(),
          [](const void* args, int compute_capability) {
            const Args& a = *static_cast<const Args*>(args);
            if constexpr (requires { K::fits(a); })
              if (!K::fits(a)) return false;
            return Binding<K>::fits(a, compute_capability);
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
