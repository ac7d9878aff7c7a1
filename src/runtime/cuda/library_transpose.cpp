#include "runtime/library_transpose.h"

#include <map>
#include <memory>
#include <mutex>

#include "base/format.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/recorder.h"

namespace cria {
namespace {

using cuda::check;
using cuda::cublaslt;

struct Release {
  void operator()(cublasLtMatrixTransformDescOpaque_t* p) const {
    cublaslt().MatrixTransformDescDestroy(p);
  }
  void operator()(cublasLtMatrixLayoutOpaque_t* p) const { cublaslt().MatrixLayoutDestroy(p); }
};
using Description = std::unique_ptr<cublasLtMatrixTransformDescOpaque_t, Release>;
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Release>;

// One handle per device, for the life of the process.
cublasLtHandle_t handle_of(Device device) {
  static std::mutex mutex;
  static std::map<int, cublasLtHandle_t> handles;
  const std::lock_guard lock(mutex);
  auto place = handles.find(device.index);
  if (place == handles.end()) {  // one that cannot be made is tried again
    cublasLtHandle_t made = nullptr;
    check(cublaslt().Create(&made), "cublasLtCreate");
    place = handles.emplace(device.index, made).first;
  }
  return place->second;
}

cudaDataType_t type_of(DType type) {
  return type == DType::f32 ? CUDA_R_32F : type == DType::bf16 ? CUDA_R_16BF : CUDA_R_16F;
}

// Column-major, as the library reads memory: `rows` are what row-major code calls columns.
Layout layout(DType type, int rows, int cols) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublaslt().MatrixLayoutCreate(&made, type_of(type), rows, cols, rows),
        "cublasLtMatrixLayoutCreate");
  return Layout(made);
}

Description transposing() {
  cublasLtMatrixTransformDesc_t made = nullptr;
  check(cublaslt().MatrixTransformDescCreate(&made, CUDA_R_32F),
        "cublasLtMatrixTransformDescCreate");
  Description description(made);
  const cublasOperation_t operation = CUBLAS_OP_T;
  check(cublaslt().MatrixTransformDescSetAttribute(made, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA,
                                                   &operation, sizeof(operation)),
        "cublasLtMatrixTransformDescSetAttribute");
  return description;
}

}  // namespace

bool has_library_transpose(Device device) {
  return device.backend == Backend::cuda && cuda::why_no_cublaslt().empty();
}

void library_transpose(Stream& stream, DType type, int rows, int cols, const void* x, void* y) {
  if (stream.device().backend != Backend::cuda)
    fail("there is no library for transposed copies on the CPU: use cria's kernels");
  make_current(stream.device());
  const Description description = transposing();
  const Layout from = layout(type, cols, rows), to = layout(type, rows, cols);
  const float one = 1, zero = 0;
  const double bytes = double(rows) * cols * double(size_of(type));
  record_launch(
      stream, "library transpose", "", {.bytes_read = bytes, .bytes_written = bytes}, [&] {
        check(cublaslt().MatrixTransform(handle_of(stream.device()), description.get(), &one, x,
                                         from.get(), &zero, nullptr, nullptr, y, to.get(),
                                         static_cast<cudaStream_t>(stream.native())),
              "cublasLtMatrixTransform");
      });
}

}  // namespace cria
