// Stands in for CUDA in a build without it: there are no devices, and using one is an error.
#include "runtime/driver.h"

#include "base/error.h"

namespace cria {
namespace {

const char* const kReason =
    "this cria was built without CUDA; install the CUDA toolkit and build again, or use --device "
    "cpu";

class AbsentDriver final : public Driver {
 public:
  int device_count() const override { return 0; }
  std::string absent_reason() const override { return kReason; }
  std::string why_unusable(int) const override { return kReason; }

  DeviceInfo describe(int) const override { absent(); }
  void make_current(int) const override { absent(); }
  void* allocate(int, size_t) const override { absent(); }
  void release(int, void*) const noexcept override {}
  void* allocate_host(int, size_t) const override { absent(); }
  void release_host(int, void*) const noexcept override {}
  MemoryUse memory_use(int) const override { absent(); }
  void forget_memory_peak(int) const override { absent(); }
  void* make_stream(int) const override { absent(); }
  void destroy_stream(int, void*) const noexcept override {}
  void synchronize(int, void*) const override { absent(); }
  void copy(int, void*, void*, const void*, size_t) const override { absent(); }
  void fill(int, void*, void*, int, size_t) const override { absent(); }
  void* make_event(int) const override { absent(); }
  void destroy_event(int, void*) const noexcept override {}
  void record_event(int, void*, void*, bool) const override { absent(); }
  void synchronize_event(int, void*) const override { absent(); }
  double elapsed_us(int, void*, void*) const override { absent(); }
  void* capture(int, void*, const std::function<void()>&) const override { absent(); }
  void replay(int, void*, void*) const override { absent(); }
  void destroy_graph(int, void*) const noexcept override {}
  void push_range(const char*) const override {}
  void pop_range() const noexcept override {}

 private:
  [[noreturn]] static void absent() { fail(std::string("no CUDA device: ") + kReason); }
};

}  // namespace

const Driver& cuda_driver() {
  static const AbsentDriver driver;
  return driver;
}

}  // namespace cria
