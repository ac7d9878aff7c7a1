// From a kernel struct to a running grid: the __global__ entry of each lowering, the tensor maps,
// launch.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include "tile/aligned.h"
#include "tile/cuda/program_ahead.h"
#include "tile/cuda/program_ampere.h"
#include "tile/cuda/program_hopper.h"
#include "tile/cuda/program_producer.h"
#include "tile/cuda/tensor_map.h"

namespace cria::tile {
inline namespace cuda {

// With room to align the start to the swizzle's period.
template <class K>
constexpr int shared_bytes() {
  if constexpr (requires { typename K::Shared; })
    return int(sizeof(typename K::Shared)) + 1024;
  else
    return 0;
}

// Arguments and tensor maps travel by value in constant memory.
template <class K>
struct Parameters {
  static constexpr int maps_count =
      K::traits.lowering == Lowering::kHopper ? operand_count<typename K::Args>() : 0;
  typename K::Args args;
  TensorMaps maps[maps_count > 0 ? maps_count : 1];
};

extern __shared__ __align__(1024) unsigned char dynamic_shared[];

template <class K, class P>
CRIA_FN void run_kernel(P& p, const typename K::Args& args) {
  if constexpr (requires { typename K::Shared; }) {
    const uintptr_t start = (reinterpret_cast<uintptr_t>(dynamic_shared) + 1023) / 1024 * 1024;
    K::run(p, args, *reinterpret_cast<typename K::Shared*>(start));
  } else {
    K::run(p, args);
  }
}

// Reads a word of every line of the arguments, so that they are in the constant cache by the time
// the grid before this one has finished.
template <class Args>
CRIA_FN void warm_up(const Args& args) {
  constexpr int line = 64 / sizeof(uint32_t), words = sizeof(Args) / sizeof(uint32_t);
  const uint32_t* word = reinterpret_cast<const uint32_t*>(&args);
#pragma unroll
  for (int i = 0; i < words; i += line) ptx::touch(word[i]);
}

template <class K>
CRIA_FN void run_hopper(const Parameters<K>& params) {
  __shared__ PipelineBarriers barriers;
  constexpr int consumers = consumer_threads<K>(), assistants = assistant_threads<K>();
  if (threadIdx.x == 0) {
    for (int s = 0; s < kMaxStages; ++s) {
      ptx::mbarrier_init(ptx::shared_address(&barriers.full[s]), 1);
      ptx::mbarrier_init(ptx::shared_address(&barriers.empty[s]), K::traits.threads / 32);
    }
    for (int s = 0; s < kMaxPrologues; ++s) {
      ptx::mbarrier_init(ptx::shared_address(&barriers.prologue_full[s]), 1);
      ptx::mbarrier_init(ptx::shared_address(&barriers.prologue_empty[s]),
                         (consumers + assistants) / 32);
    }
    for (int h = 0; h < kHands && assistants > 0; ++h) {
      ptx::mbarrier_init(ptx::shared_address(&barriers.handed_over[h]), consumers / 32);
      ptx::mbarrier_init(ptx::shared_address(&barriers.handed_back[h]), assistants / 32);
    }
    ptx::mbarrier_init_fence();
  }
  typename K::Args args = params.args;
  int next = 0;
  args.operands([&](const char*, auto& t, auto...) { t.descriptor = &params.maps[next++]; });
  __syncthreads();
  const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
  if (warp >= (consumers + assistants) / 32) {
    ptx::set_registers_down<RegisterSplit<K>::producer>();
    if (warp == (consumers + assistants) / 32 && ptx::elect()) {
      args.operands([&](const char*, auto& t, auto... tag) {
        if (sizeof...(tag) == 0 && t.data) ptx::tma_prefetch_map(t.descriptor);
      });
      ProducerProgram<K> p(ptx::shared_address(&barriers));
      run_kernel<K>(p, args);
    }
    return;
  }
  auto compute = [&](auto p) {
    ptx::wait_for_previous_grid();
    run_kernel<K>(p, args);
    p.finish();
  };
  if constexpr (assistants > 0) {
    if (warp >= consumers / 32) {
      ptx::set_registers_down<RegisterSplit<K>::assistant>();
      compute(ConsumerProgram<Assistant<K>>(ptx::shared_address(&barriers)));
      return;
    }
  }
  ptx::set_registers_up<RegisterSplit<K>::consumer>();
  compute(ConsumerProgram<K>(ptx::shared_address(&barriers)));
}

// Accesses of one element need more registers and would spill under the bound of those of vectors.
template <class K, Access A>
constexpr int resident_programs() {
  return A != Access::kElements || K::traits.cooperative ? K::traits.min_blocks : 1;
}

// NOTE: one struct, not a pack: __grid_constant__ on a parameter pack fails in nvcc 13.0.
template <class K, Access A>
__global__ void __launch_bounds__(block_threads<K>(), resident_programs<K, A>())
    entry(const __grid_constant__ Parameters<K> params) {
  ptx::allow_next_grid();
  warm_up(params.args);
  if constexpr (K::traits.lowering == Lowering::kHopper) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    run_hopper(params);
#else
    __trap();
#endif
  } else {
    AheadProgram<K> early;
    if constexpr (ptx::kGridsOverlap && requires { K::ahead(early, params.args); })
      K::ahead(early, params.args);
    ptx::wait_for_previous_grid();
    ProgramAmpere<K, A> p(threadIdx.x, 0);
    run_kernel<K>(p, params.args);
  }
}

struct LaunchTarget {
  cudaStream_t stream;
  int multiprocessors;
  int compute_capability;  // 90 for sm_90
};

template <class K>
const void* entry_point(Access access) {
  constexpr bool hopper = K::traits.lowering == Lowering::kHopper;
  constexpr Access cut = Access::kCutVectors;
  constexpr Access elements = hopper ? cut : Access::kElements;
  constexpr Access vectors = hopper ? cut : Access::kVectors;
  return reinterpret_cast<const void*>(access == Access::kElements  ? &entry<K, elements>
                                       : access == Access::kVectors ? &entry<K, vectors>
                                                                    : &entry<K, cut>);
}

template <class K>
cudaError_t launch(const LaunchTarget& target, const typename K::Args& args) {
  Grid grid = K::grid(args);
  if (grid.programs() == 0) return cudaSuccess;
  if (K::traits.persistent || K::traits.cooperative) {
    const int64_t wave = int64_t(target.multiprocessors) * K::traits.min_blocks;
    if (grid.x > wave) grid.x = wave;
  }
  Parameters<K> params{args, {}};
  if constexpr (K::traits.lowering == Lowering::kHopper) {
    int next = 0;
    cudaError_t status = cudaSuccess;
    params.args.operands([&](const char*, auto& t, auto... tag) {
      if (status == cudaSuccess && sizeof...(tag) == 0) status = encode_maps(params.maps[next], t);
      ++next;
    });
    if (status != cudaSuccess) return status;
  }
  const void* function = entry_point<K>(access_for<K>(args));
  if (shared_bytes<K>() > 48 * 1024) {
    const cudaError_t status = cudaFuncSetAttribute(
        function, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes<K>());
    if (status != cudaSuccess) return status;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(unsigned(grid.x), grid.y, grid.z);
  config.blockDim = dim3(block_threads<K>());
  config.dynamicSmemBytes = shared_bytes<K>();
  config.stream = target.stream;
  cudaLaunchAttribute attributes[1];
  if (K::traits.cooperative) {
    attributes[0].id = cudaLaunchAttributeCooperative;
    attributes[0].val.cooperative = 1;
    config.attrs = attributes, config.numAttrs = 1;
  } else if (target.compute_capability >= 90) {
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    config.attrs = attributes, config.numAttrs = 1;
  }
  void* pointers[] = {&params};
  return cudaLaunchKernelExC(&config, function, pointers);
}

}  // namespace cuda
}  // namespace cria::tile
