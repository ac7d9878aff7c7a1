// What a device can do at most, measured: moving bytes, multiplying and adding, multiplying
// matrices. Each ceiling is a contender, so that it can be timed in turn with what it bounds.
#pragma once

#include <string>
#include <vector>

#include "lab/measure.h"
#include "runtime/device.h"
#include "runtime/product.h"

namespace cria {

struct Ceiling {
  Contender contender;
  double amount = 0;  // bytes or floating-point operations of one run
  bool in_flops = false;

  std::string unit() const { return in_flops ? "TFLOP/s" : "GB/s"; }
  // In unit().
  double rate(double time_us) const { return amount / time_us * (in_flops ? 1e-6 : 1e-3); }
};

// Moves `bytes` in total: half are read, half written, by the vendor's copy or memcpy on all cores.
Ceiling copy_ceiling(Device device, double bytes);

// The same for what is written where it was read, which a CPU does faster: a line that is overwritten
// without having been read is fetched first, or written past the caches. On CUDA, a copy.
Ceiling update_ceiling(Device device, double bytes);

// Reads `bytes` and writes almost nothing.
Ceiling read_ceiling(Device device, double bytes);

// Fused multiply-adds in f32 on all cores, without memory.
Ceiling fma_ceiling(Device device);

// The library's product of large square matrices.
Ceiling product_ceiling(Device device, DType type, Precision precision = Precision::full);

struct CeilingFigure {
  std::string name;
  std::string unit;
  double value = 0;
};

// All of them.
std::vector<CeilingFigure> measure_ceilings(Device device, const MeasureOptions& options);

// Of the last level: operands beyond this come from memory.
double cache_bytes(Device device);

}  // namespace cria
