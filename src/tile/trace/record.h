// One memory request as a GPU would issue it: what the tracer produces and all its analyses read.
#pragma once

#include <cstdint>

namespace cria::tile {

enum class AccessKind {
  kLoad,         // global -> registers
  kStore,        // registers -> global
  kAsyncCopy,    // global side of cp.async
  kBulkLoad,     // one TMA box, global -> shared
  kBulkStore,    // one TMA box, shared -> global
  kSharedLoad,   // shared -> registers, ldmatrix among them
  kSharedStore,  // registers -> shared, stmatrix among them
  kSharedFill,   // shared side of cp.async
};

constexpr bool is_shared(AccessKind kind) { return kind >= AccessKind::kSharedLoad; }
constexpr bool is_bulk(AccessKind kind) {
  return kind == AccessKind::kBulkLoad || kind == AccessKind::kBulkStore;
}
constexpr bool is_write(AccessKind kind) {
  return kind == AccessKind::kStore || kind == AccessKind::kBulkStore ||
         kind == AccessKind::kSharedStore || kind == AccessKind::kSharedFill;
}
constexpr const char* name_of(AccessKind kind) {
  constexpr const char* names[] = {"load",       "store",       "async copy",   "bulk load",
                                   "bulk store", "shared load", "shared store", "shared fill"};
  return names[static_cast<int>(kind)];
}

// Addresses are bytes: real ones in global memory, offsets into a shared tile otherwise.
struct AccessRecord {
  static constexpr int kLanes = 32;
  static constexpr uint64_t kInactive = ~uint64_t{0};

  AccessKind kind;
  int64_t program;  // x fastest
  int warp;
  const char* file;  // of the kernel's line
  int line;
  int operand;  // index into Trace::operands(), -1 for shared memory
  int bytes;    // per lane, or per row of a bulk copy
  uint64_t address[kLanes];
  // Bytes at the end of a lane's vector that lie beyond a mask or a tensor: what is there is
  // neither used nor written, and does not count.
  uint8_t beyond[kLanes] = {};

  // Bulk copies: `rows` runs of `bytes`, `row_stride` bytes apart, from address[0].
  int rows = 0;
  int64_t row_stride = 0;
};

}  // namespace cria::tile
