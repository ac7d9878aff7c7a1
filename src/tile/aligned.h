// How a launch's threads may reach its operands: the rule that launcher and tracer share.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tile/kernel.h"

namespace cria::tile {

enum class Access {
  kElements,    // one at a time
  kVectors,     // 16 bytes at a time
  kCutVectors,  // the same; those over the end of a row are loaded whole, and stored by elements
};

// Vectors, if every operand's base, and its strides wherever there are several to step over, are
// whole 16 bytes: a vector that begins inside a row then lies in 16 bytes that do. Operands marked
// element_wise do not count, nor do those that are not there.
template <class Args>
Access access_of(Args args) {
  bool aligned = true, whole = true;
  args.operands([&](const char*, auto& t, auto... tag) {
    if (sizeof...(tag) > 0 || t.size() == 0) return;
    const int64_t step = 16 / static_cast<int64_t>(sizeof(*t.data));
    aligned = aligned && reinterpret_cast<uintptr_t>(t.data) % 16 == 0 &&
              (t.rows <= 1 || t.ld % step == 0) && (t.heads <= 1 || t.head_stride % step == 0) &&
              (t.batch <= t.heads || t.batch_stride % step == 0);
    whole = whole && t.cols % step == 0;
  });
  return !aligned ? Access::kElements : whole ? Access::kVectors : Access::kCutVectors;
}

// Whether TMA can read and write these operands. NOTE: it writes whole 16 bytes, also where a row
// ends amid them (seen on an H200): such a row is given with the gap behind it, or not to TMA. What
// it writes has the kernel's element type.
template <class Args>
bool suits_tma(Args args) {
  bool whole = true;
  args.operands([&](const char*, auto& t, auto...) {
    using T = std::remove_reference_t<decltype(*t.data)>;
    if (std::is_same_v<T, typename Args::Element>)
      whole = whole && t.cols * static_cast<int64_t>(sizeof(T)) % 16 == 0;
  });
  return whole && access_of(args) != Access::kElements;
}

// That of the instantiation which a launch of K runs. What TMA moves is cut without further ado, so
// that a Hopper kernel has but one.
template <class K>
Access access_for(const typename K::Args& args) {
  const Access access = access_of(args);
  const bool any_width = K::traits.lowering == Lowering::kHopper && access == Access::kVectors;
  return any_width ? Access::kCutVectors : access;
}

}  // namespace cria::tile
