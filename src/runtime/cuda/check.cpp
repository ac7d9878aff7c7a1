#include "runtime/cuda/check.h"

#include "base/format.h"
#include "runtime/cuda/cublaslt.h"

namespace cria::cuda {

void fail_call(cudaError_t status, const char* call) {
  // CUDA keeps the last error until it is read; a later, unrelated check must not see this one.
  static_cast<void>(cudaGetLastError());
  fail_f("{} failed: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status));
}

void fail_call(cublasStatus_t status, const char* call) {
  fail_f("{} failed: {} ({})", call, cublaslt().GetStatusString(status),
         cublaslt().GetStatusName(status));
}

}  // namespace cria::cuda
