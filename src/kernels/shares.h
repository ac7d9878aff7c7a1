// How many shares of a kernel's work have a sum of their own, to be added up afterwards. On a GPU
// as many as its multiprocessors like. On the CPU the problem alone decides, and so do the bits of
// a sum: they are the same on any number of cores.
#pragma once

#include "runtime/device.h"

namespace cria::kernels {

int rmsnorm_shares(Device device, int rows);              // rows of partials: rmsnorm_backward.h
int sum_shares(Device device);                            // partials at most: reduction.h
int decode_parts(Device device, int kv_heads, int keys);  // of up to so many keys

// Cores that a configuration must suit, where configurations may differ in their sums too.
int cores_to_suit(Device device);

}  // namespace cria::kernels
