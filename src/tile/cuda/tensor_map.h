// TMA descriptors of a tensor view: one map per box height, all one 128-byte panel wide and
// swizzled. NOTE: the box height limits throughput (16-row boxes cost up to half), so a fetch picks
// the tallest box that divides its tile. The maps have rank 4 (column, row, head, group), so tails
// never read the next matrix.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include "base/tensor.h"
#include "tile/cuda/hopper_roles.h"

namespace cria::tile {
inline namespace cuda {

struct TensorMaps {
  CUtensorMap by_height[kBoxHeights];
};
static_assert(sizeof(CUtensorMap) == kMapBytes);

template <class Args>
constexpr int operand_count() {
  int n = 0;
  Args args{};
  args.operands([&](const char*, auto&, auto...) { ++n; });
  return n;
}

inline PFN_cuTensorMapEncodeTiled_v12000 tensor_map_encoder() {
  static const auto encoder = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                     &found);
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
  }();
  return encoder;
}

template <class T>
cudaError_t encode_maps(TensorMaps& maps, const Tensor<T>& t) {
  using M = std::remove_cv_t<T>;
  const auto type = std::is_same_v<M, bf16>  ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                    : std::is_same_v<M, f16> ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                             : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  if (t.size() == 0) return cudaSuccess;  // an operand that this launch does not use
  const auto encode = tensor_map_encoder();
  if (!encode) return cudaErrorNotSupported;
  const cuuint64_t size[4] = {cuuint64_t(t.cols), cuuint64_t(t.rows), cuuint64_t(t.heads),
                              cuuint64_t(t.batch / t.heads)};
  const auto bytes = [](int64_t elements) { return cuuint64_t(elements) * sizeof(M); };
  // A stride that nothing steps over must be whole 16 bytes, too.
  const int64_t row = t.rows > 1 ? t.ld : pitch_of(t.cols);
  const cuuint64_t stride[3] = {bytes(row), bytes(t.heads > 1 ? t.head_stride : row),
                                bytes(t.batch > t.heads ? t.batch_stride : row)};
  const cuuint32_t step[4] = {1, 1, 1, 1};
  for (int i = 0; i < kBoxHeights; ++i) {
    const cuuint32_t box[4] = {128 / sizeof(M), 32u << i, 1, 1};
    const CUresult status =
        encode(&maps.by_height[i], type, 4, const_cast<M*>(t.data), size, stride, box, step,
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (status != CUDA_SUCCESS) return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

}  // namespace cuda
}  // namespace cria::tile
