// Every CUDA and cuBLASLt call goes through check(): a failure throws Error with the name of the
// call and the library's own words.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

namespace cria::cuda {

[[noreturn]] void fail_call(cudaError_t status, const char* call);
[[noreturn]] void fail_call(cublasStatus_t status, const char* call);

inline void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) [[unlikely]] {
    fail_call(status, call);
  }
}

inline void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]] {
    fail_call(status, call);
  }
}

}  // namespace cria::cuda
