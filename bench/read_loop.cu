#include <cuda_runtime.h>

#include <memory>

#include "base/error.h"
#include "bench/read_loop.h"
#include "runtime/buffer.h"

namespace cria::claims {
namespace {

constexpr int kThreads = 512, kLoads = 4;  // 16-byte loads in flight per thread

__global__ void read_loop(const uint4* data, size_t count, unsigned* sink) {
  unsigned bits = 0;
  const size_t stride = size_t(gridDim.x) * kThreads * kLoads;
  for (size_t i = size_t(blockIdx.x) * kThreads * kLoads + threadIdx.x; i < count; i += stride) {
    uint4 v[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k)
      v[k] = i + k * kThreads < count ? __ldcs(data + i + k * kThreads) : uint4{};
#pragma unroll
    for (int k = 0; k < kLoads; ++k) bits |= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
  }
  if (bits == 0x9e3779b9u) *sink = bits;  // practically never: keeps the loads
}

}  // namespace

Ceiling read_loop_ceiling(Device device, double bytes) {
  if (device.backend == Backend::cpu) return read_ceiling(device, bytes);
  const size_t count = static_cast<size_t>(bytes) / sizeof(uint4);
  auto data = std::make_shared<Buffer>(device, count * sizeof(uint4) + sizeof(uint4));
  data->fill_bytes(0x3c);
  const int blocks = core_count(device) * 4;
  auto run = [data, count, blocks](Stream& stream, int) {
    make_current(stream.device());
    read_loop<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream.native())>>>(
        data->as<uint4>(), count, reinterpret_cast<unsigned*>(data->as<uint4>() + count));
    if (cudaGetLastError() != cudaSuccess) fail("the read loop could not be launched");
  };
  Ceiling ceiling;
  ceiling.contender = {"hand-written read loop", run};
  ceiling.amount = double(count * sizeof(uint4));
  return ceiling;
}

}  // namespace cria::claims
