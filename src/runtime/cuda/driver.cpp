// CUDA as a backend, over the CUDA runtime API. Handles are cudaStream_t, cudaEvent_t and
// cudaGraphExec_t. Destroying ignores errors: the process may be ending, and CUDA with it.
#include "runtime/driver.h"

#include <nvtx3/nvToolsExt.h>

#include "base/format.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/describe.h"
#include "runtime/gpu_code.h"

namespace cria {
namespace {

using cuda::check;

cudaStream_t as_stream(void* handle) { return static_cast<cudaStream_t>(handle); }
cudaEvent_t as_event(void* handle) { return static_cast<cudaEvent_t>(handle); }
cudaGraphExec_t as_graph(void* handle) { return static_cast<cudaGraphExec_t>(handle); }

// CUDA calls act on the calling thread's current device.
void use(int index) { check(cudaSetDevice(index), "cudaSetDevice"); }

struct Presence {
  int count = 0;
  std::string reason;
};

// Asked once: a device cannot come or go while the process runs.
const Presence& presence() {
  static const Presence found = [] {
    Presence p;
    cudaError_t status = cudaGetDeviceCount(&p.count);
    if (status != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      p.count = 0;
    }
    if (p.count == 0) {
      const char* words = cudaGetErrorString(status == cudaSuccess ? cudaErrorNoDevice : status);
      p.reason = fmt::format("CUDA says '{}'; check nvidia-smi, or use --device cpu", words);
    }
    return p;
  }();
  return found;
}

[[noreturn]] void fail_out_of_memory(int index, size_t bytes) {
  static_cast<void>(cudaGetLastError());
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  fail_f(
      "cannot allocate {:.1f} MiB on cuda:{}, where {:.1f} of {:.1f} MiB are free: use smaller "
      "shapes, or end other programs on it",
      bytes / 1048576.0, index, free / 1048576.0, total / 1048576.0);
}

[[noreturn]] void fail_out_of_host_memory(size_t bytes) {
  static_cast<void>(cudaGetLastError());
  fail_f(
      "cannot lock {:.1f} MiB of host memory for copies to and from a GPU: use smaller shapes, or "
      "end other programs",
      bytes / 1048576.0);
}

class CudaDriver final : public Driver {
 public:
  int device_count() const override { return presence().count; }
  std::string absent_reason() const override { return presence().reason; }
  std::string why_unusable(int index) const override {
    return cria::why_unusable(CRIA_CUDA_ARCHITECTURES, compute_capability({Backend::cuda, index}));
  }
  DeviceInfo describe(int index) const override { return cuda::describe(index); }
  void make_current(int index) const override { use(index); }

  void* allocate(int index, size_t bytes) const override {
    use(index);
    void* data = nullptr;
    // Kernels may load the last elements with the rest of their 16 bytes.
    cudaError_t status = cudaMalloc(&data, (bytes + 15) / 16 * 16);
    if (status == cudaErrorMemoryAllocation) fail_out_of_memory(index, bytes);
    check(status, "cudaMalloc");
    return data;
  }
  void release(int index, void* data) const noexcept override {
    if (cudaSetDevice(index) == cudaSuccess) cudaFree(data);
  }
  void* allocate_host(int index, size_t bytes) const override {
    use(index);
    void* data = nullptr;
    const cudaError_t status = cudaMallocHost(&data, bytes);
    if (status == cudaErrorMemoryAllocation) fail_out_of_host_memory(bytes);
    check(status, "cudaMallocHost");
    return data;
  }
  void release_host(int index, void* data) const noexcept override {
    if (cudaSetDevice(index) == cudaSuccess) cudaFreeHost(data);
  }

  MemoryUse memory_use(int index) const override {
    use(index);
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return {.free = free, .used = total - free, .peak = total - free};
  }
  void forget_memory_peak(int) const override {}

  // A blocking stream: it keeps order with the default stream, which Buffer's own copies use.
  void* make_stream(int index) const override {
    use(index);
    cudaStream_t stream = nullptr;
    check(cudaStreamCreate(&stream), "cudaStreamCreate");
    return stream;
  }
  void destroy_stream(int, void* stream) const noexcept override {
    cudaStreamDestroy(as_stream(stream));
  }
  void synchronize(int index, void* stream) const override {
    use(index);
    check(cudaStreamSynchronize(as_stream(stream)), "cudaStreamSynchronize");
  }
  void copy(int index, void* stream, void* to, const void* from, size_t bytes) const override {
    use(index);
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, as_stream(stream)),
          "cudaMemcpyAsync");
  }
  void fill(int index, void* stream, void* data, int byte, size_t bytes) const override {
    use(index);
    check(cudaMemsetAsync(data, byte, bytes, as_stream(stream)), "cudaMemsetAsync");
  }

  void* make_event(int index) const override {
    use(index);
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "cudaEventCreate");
    return event;
  }
  void destroy_event(int, void* event) const noexcept override {
    cudaEventDestroy(as_event(event));
  }
  void record_event(int index, void* event, void* stream, bool timed_only) const override {
    use(index);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (timed_only)
      check(cudaStreamIsCapturing(as_stream(stream), &status), "cudaStreamIsCapturing");
    const bool in_graph = status == cudaStreamCaptureStatusActive;
    check(cudaEventRecordWithFlags(as_event(event), as_stream(stream),
                                   in_graph ? cudaEventRecordExternal : cudaEventRecordDefault),
          "cudaEventRecord");
  }
  void synchronize_event(int, void* event) const override {
    check(cudaEventSynchronize(as_event(event)), "cudaEventSynchronize");
  }
  double elapsed_us(int, void* start, void* end) const override {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, as_event(start), as_event(end)),
          "cudaEventElapsedTime");
    return 1e3 * milliseconds;
  }

  void* capture(int index, void* stream, const std::function<void()>& launches) const override;
  void replay(int index, void* graph, void* stream) const override {
    use(index);
    check(cudaGraphLaunch(as_graph(graph), as_stream(stream)), "cudaGraphLaunch");
  }
  void destroy_graph(int, void* graph) const noexcept override {
    cudaGraphExecDestroy(as_graph(graph));
  }

  void push_range(const char* name) const override { nvtxRangePushA(name); }
  void pop_range() const noexcept override { nvtxRangePop(); }
};

// The relaxed mode lets a library allocate in its first call, which may be in the capture.
void* CudaDriver::capture(int index, void* stream, const std::function<void()>& launches) const {
  use(index);
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(as_stream(stream), cudaStreamCaptureModeRelaxed),
        "cudaStreamBeginCapture");
  try {
    launches();
  } catch (...) {
    if (cudaStreamEndCapture(as_stream(stream), &graph) == cudaSuccess) cudaGraphDestroy(graph);
    static_cast<void>(cudaGetLastError());
    throw;
  }
  check(cudaStreamEndCapture(as_stream(stream), &graph), "cudaStreamEndCapture");
  cudaGraphExec_t executable = nullptr;
  cudaError_t status = cudaGraphInstantiateWithFlags(&executable, graph, 0);
  cudaGraphDestroy(graph);
  check(status, "cudaGraphInstantiate");
  return executable;
}

}  // namespace

const Driver& cuda_driver() {
  static const CudaDriver driver;
  return driver;
}

}  // namespace cria
