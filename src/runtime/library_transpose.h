// The vendor's transposed copy, a rival for cria's own: cuBLASLt's matrix transform. CPUs have
// none.
#pragma once

#include "base/dtype.h"
#include "runtime/stream.h"

namespace cria {

bool has_library_transpose(Device device);

// y = x', x is rows x cols, both row-major and without gaps; an Error where the device has none.
void library_transpose(Stream& stream, DType type, int rows, int cols, const void* x, void* y);

}  // namespace cria
