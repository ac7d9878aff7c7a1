// Whether a launch may use 16-byte accesses: the rule that launcher and tracer share.
#pragma once

#include <cstdint>

namespace cria::tile {

// Every operand's base and width, and its strides wherever there are several, are whole 16 bytes.
// Operands marked element_wise do not count.
template <class Args>
bool operands_aligned(Args args) {
  bool aligned = true;
  args.operands([&](const char*, auto& t, auto... tag) {
    if (sizeof...(tag) > 0) return;
    const int64_t step = 16 / static_cast<int64_t>(sizeof(*t.data));
    aligned = aligned && reinterpret_cast<uintptr_t>(t.data) % 16 == 0 && t.cols % step == 0 &&
              (t.rows <= 1 || t.ld % step == 0) && (t.heads <= 1 || t.head_stride % step == 0) &&
              (t.batch <= t.heads || t.batch_stride % step == 0);
  });
  return aligned;
}

}  // namespace cria::tile
