// Runs a kernel struct on a CUDA stream.
#pragma once

#include <string>

#include "base/error.h"
#include "runtime/kernel.h"
#include "tile/target.h"

namespace cria::kernels {

inline constexpr Target kBoundTarget = Target::cuda;

template <class K>
struct Binding {
  using Args = typename K::Args;
  static constexpr bool wanted = true;

  static bool fits(const Args& args, int compute_capability) {
    if (tile::shared_bytes<K>() > largest_shared_bytes(compute_capability)) return false;
    if constexpr (K::traits.lowering == tile::Lowering::kHopper)
      return compute_capability == 90 && tile::suits_tma(args);
    return true;
  }

  static void run(void* context, const Args& args) {
    Stream& stream = *static_cast<Stream*>(context);
    make_current(stream.device());
    const tile::LaunchTarget target{
        static_cast<cudaStream_t>(stream.native()),
        attribute(cudaDevAttrMultiProcessorCount, stream.device()),
        attribute(cudaDevAttrComputeCapabilityMajor, stream.device()) * 10};
    check(tile::launch<K>(target, args));
  }

  static KernelResources resources() {
    const void* function = tile::entry_point<K>(tile::Access::kVectors);
    cudaFuncAttributes a;
    check(cudaFuncGetAttributes(&a, function));
    constexpr int threads = tile::block_threads<K>(), dynamic = tile::shared_bytes<K>();
    int blocks = 0;
    if (dynamic > 48 * 1024)
      check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic));
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads, dynamic));
    return {a.numRegs, int(a.localSizeBytes), int(a.sharedSizeBytes) + dynamic, threads, blocks};
  }

 private:
  // That a program may ask for.
  static constexpr int largest_shared_bytes(int compute_capability) {
    if (compute_capability / 10 == 9 || compute_capability / 10 == 10) return 227 * 1024;
    return (compute_capability == 80 || compute_capability == 87 ? 163 : 99) * 1024;
  }
  static int attribute(cudaDeviceAttr which, Device device) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, which, device.index));
    return value;
  }
  static void check(cudaError_t status) {
    if (status != cudaSuccess)
      fail(std::string(K::Args::kernel) + " (" + K::Config::name() +
           ") could not be launched: " + cudaGetErrorString(status));
  }
};

}  // namespace cria::kernels
