// Running one program: the launch it belongs to, its scratch memory, its shared tiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "tile/cpu/namespace.h"
#include "tile/kernel.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

// What a launch tells all its programs.
struct LaunchState {
  Grid programs;
  // Grid-wide; null where programs run one after the other.
  void (*barrier)(void* context) = nullptr;
  // While a program waits for another, and an exception if one has failed; null unless programs
  // may run at the same time, those that come first beginning first.
  void (*pause)(void* context) = nullptr;
  void* context = nullptr;
};

// Bytes of a kernel's shared tiles, and floats in room for the largest of them.
template <class K>
constexpr size_t shared_bytes() {
  if constexpr (requires { typename K::Shared; })
    return (sizeof(typename K::Shared) + 63) / 64 * 64;
  else
    return 0;
}
template <class K>
constexpr size_t spare_floats() {
  return shared_bytes<K>() / sizeof(float);
}

// Scratch memory of one program: its shared tiles, then room for two operands of dot.
template <class K>
constexpr size_t scratch_bytes() {
  return shared_bytes<K>() + 2 * spare_floats<K>() * sizeof(float);
}

// Runs one program in `scratch`, aligned to 64 bytes.
template <class P, class K, class... Probe>
CRIA_FN void run_program(const typename K::Args& args, const LaunchState& state, int64_t index,
                         std::byte* scratch, const Probe&... probe) {
  P p(state, index, reinterpret_cast<float*>(scratch + shared_bytes<K>()), probe...);
  if constexpr (requires { typename K::Shared; })
    K::run(p, args, *new (scratch) typename K::Shared);
  else
    K::run(p, args);
}

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
