// How a launch's threads may reach its operands: the rule that launcher and tracer share.
#pragma once

#include <cstdint>

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

// That of the instantiation which a launch of K runs. What TMA moves is cut without further ado, so
// that a Hopper kernel has but one.
template <class K>
Access access_for(const typename K::Args& args) {
  const Access access = access_of(args);
  const bool any_width = K::traits.lowering == Lowering::kHopper && access == Access::kVectors;
  return any_width ? Access::kCutVectors : access;
}

}  // namespace cria::tile
