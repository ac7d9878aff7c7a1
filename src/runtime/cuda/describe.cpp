#include "runtime/cuda/describe.h"

#include "runtime/cuda/check.h"

namespace cria::cuda {
namespace {

int attribute(cudaDeviceAttr which, int index) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, index), "cudaDeviceGetAttribute");
  return value;
}

// 13010 is version 13.1.
std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

}  // namespace

DeviceInfo describe(int index) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");

  DeviceInfo info;
  info.name = properties.name;
  info.cores = properties.multiProcessorCount;
  info.memory_bytes = properties.totalGlobalMem;
  info.l2_bytes = properties.l2CacheSize;
  info.compute_capability = properties.major * 10 + properties.minor;
  info.shared_bytes_per_block = properties.sharedMemPerBlockOptin;
  info.shared_bytes_per_core = properties.sharedMemPerMultiprocessor;
  // NOTE: CUDA 13 removed the clocks from cudaDeviceProp; the attributes remain, in kHz.
  info.clock_mhz = attribute(cudaDevAttrClockRate, index) / 1e3;
  info.memory_clock_mhz = attribute(cudaDevAttrMemoryClockRate, index) / 1e3;
  info.driver_version = version(driver);
  info.runtime_version = version(runtime);
  return info;
}

}  // namespace cria::cuda
