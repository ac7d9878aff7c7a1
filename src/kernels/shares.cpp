#include "kernels/shares.h"

#include <algorithm>

#include "kernels/attention_decode.h"

namespace cria::kernels {
namespace {

bool on_cpu(Device device) { return device.backend == Backend::cpu; }

// Shares that divide evenly among the multiprocessors, whichever configuration runs.
int by_cores(Device device, int each) { return core_count(device) * each; }

// On the CPU: enough shares for its cores, but none too small to be worth a sum of its own.
constexpr int kMostShares = 64, kLeastRows = 64, kLeastKeys = 256, kDecodePrograms = 32;

}  // namespace

int rmsnorm_shares(Device device, int rows) {
  return on_cpu(device) ? std::clamp(rows / kLeastRows, 1, kMostShares) : by_cores(device, 4);
}

int sum_shares(Device device) { return on_cpu(device) ? kMostShares : by_cores(device, 8); }

int decode_parts(Device device, int kv_heads, int keys) {
  const int programs = on_cpu(device) ? kDecodePrograms : by_cores(device, 4);
  const int least = on_cpu(device) ? kLeastKeys : KeyParts::kLeastKeys;
  return std::min(tile::ceil_div(programs, kv_heads), tile::ceil_div(keys, least));
}

int cores_to_suit(Device device) { return on_cpu(device) ? 8 : core_count(device); }

}  // namespace cria::kernels
