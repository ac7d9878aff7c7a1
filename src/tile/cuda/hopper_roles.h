// What the roles of a block share in the sm_90a lowering: threads and registers of each, and the
// mbarriers they meet at.
#pragma once

#include <cstdint>

#include "tile/kernel.h"

namespace cria::tile {
inline namespace cuda {

inline constexpr int kMaxStages = 14, kMaxPrologues = 2;
inline constexpr int kBoxHeights = 4;  // TMA maps of 32, 64, 128 and 256 rows, a panel wide
inline constexpr int kMapBytes = 128;

struct PipelineBarriers {
  uint64_t full[kMaxStages], empty[kMaxStages];
  uint64_t prologue_full[kMaxPrologues], prologue_empty[kMaxPrologues];
  uint64_t handed_over[kHands], handed_back[kHands];
};

// Where a role stands in the ring of stages.
struct RingPosition {
  int stage = 0, phase = 0;
  template <int S>
  CRIA_FN void advance() {
    if (++stage == S) stage = 0, phase ^= 1;
  }
  template <int S>
  CRIA_FN RingPosition before() const {
    return {(stage + S - 1) % S, phase ^ (stage == 0)};
  }
  template <int S>
  CRIA_FN void skip(int n) {
    const int t = stage + n;
    phase ^= t / S & 1;
    stage = t % S;
  }
};

struct BarrierAddresses {
  uint32_t base;
  CRIA_FN uint32_t full(int s) const { return base + s * 8; }
  CRIA_FN uint32_t empty(int s) const { return base + (kMaxStages + s) * 8; }
  CRIA_FN uint32_t prologue_full(int s) const { return base + (2 * kMaxStages + s) * 8; }
  CRIA_FN uint32_t prologue_empty(int s) const {
    return base + (2 * kMaxStages + kMaxPrologues + s) * 8;
  }
  CRIA_FN uint32_t handed_over(int hand) const {
    return base + (2 * kMaxStages + 2 * kMaxPrologues + hand) * 8;
  }
  CRIA_FN uint32_t handed_back(int hand) const { return handed_over(kHands + hand); }
};

template <class K>
constexpr int consumer_threads() {
  return K::traits.threads * K::traits.groups;
}
inline constexpr int kProducerThreads = 128;
template <class K>
constexpr int assistant_threads() {
  if constexpr (K::traits.assisted) return Assistant<K>::traits.threads;
  return 0;
}
template <class K>
constexpr int block_threads() {
  return consumer_threads<K>() + assistant_threads<K>() +
         (K::traits.lowering == Lowering::kHopper ? kProducerThreads : 0);
}

// Registers per thread of each role, from the 64 K of a multiprocessor; multiples of 8.
// NOTE: a producer below 32 registers spills; where there are more to spare, it has 40.
template <class K>
struct RegisterSplit {
  static constexpr int consumers = consumer_threads<K>() / 128;
  static constexpr int assistant = K::traits.assisted ? 64 : 0;
  static constexpr int even_split = 65536 / (K::traits.min_blocks * block_threads<K>()) / 8 * 8;
  static constexpr int at_launch = min_of(even_split, 248);
  static_assert(assistant <= at_launch, "too many threads for an assistant's registers");
  static constexpr int producer = consumers >= 3 || K::traits.assisted ? 32 : 40;
  static constexpr int consumer = min_of(
      (at_launch * (block_threads<K>() / 128) - producer - assistant) / consumers / 8 * 8, 240);
};

}  // namespace cuda
}  // namespace cria::tile
