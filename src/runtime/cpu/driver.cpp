// The CPU as a backend: everything happens at once, in the caller and the pool's threads.
#include "runtime/driver.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/format.h"
#include "runtime/cpu/cores.h"
#include "runtime/product.h"
#include "runtime/thread_pool.h"

namespace cria {
namespace {

using Clock = std::chrono::steady_clock;
using Mark = std::optional<Clock::time_point>;  // empty until recorded
using Launches = std::function<void()>;

constexpr size_t kPageBytes = 4096, kHugePageBytes = 2 << 20;
constexpr size_t kLargeBytes = 64 << 20;

[[noreturn]] void fail_out_of_memory(size_t bytes) {
  fail_f(
      "cannot allocate {:.1f} MiB of host memory, of which there are {:.1f} MiB: use smaller "
      "shapes",
      bytes / 1048576.0, memory_bytes() / 1048576.0);
}

Clock::time_point time_of(void* event) {
  const Mark& mark = *static_cast<Mark*>(event);
  require(mark.has_value(), "this Event was never recorded: call record() before using its time");
  return *mark;
}

class CpuDriver final : public Driver {
 public:
  int device_count() const override { return 1; }
  std::string absent_reason() const override { return ""; }
  std::string why_unusable(int) const override { return ""; }
  void make_current(int) const override {}

  DeviceInfo describe(int) const override {
    DeviceInfo info;
    info.name = cpu_name();
    info.cores = available_cores();
    info.memory_bytes = memory_bytes();
    info.l2_bytes = l2_cache_bytes();
    info.clock_mhz = cpu_clock_mhz();
    info.runtime_version = product_library(kCpu);
    return info;
  }

  void* allocate(int, size_t bytes) const override {
    // Linux promises more memory than there is, and ends the process when it is used.
    if (bytes > kLargeBytes && bytes > memory_bytes()) fail_out_of_memory(bytes);
    const size_t page = bytes >= 4 * kHugePageBytes ? kHugePageBytes : kPageBytes;
    const size_t rounded = (bytes + page - 1) / page * page;
    void* data = std::aligned_alloc(page, rounded);
    if (!data) fail_out_of_memory(bytes);
    // Streaming through pages of 4 KiB a core spends a third of its time on looking them up. Where
    // the system has no huge pages to give, it stays at that.
    if (page == kHugePageBytes) ::madvise(data, rounded, MADV_HUGEPAGE);
    return data;
  }
  void release(int, void* data) const noexcept override { std::free(data); }
  void* allocate_host(int index, size_t bytes) const override { return allocate(index, bytes); }
  void release_host(int index, void* data) const noexcept override { release(index, data); }

  MemoryUse memory_use(int) const override {
    return {
        .free = available_memory_bytes(), .used = resident_bytes(), .peak = peak_resident_bytes()};
  }
  void forget_memory_peak(int) const override { forget_peak_resident_bytes(); }

  void* make_stream(int) const override { return nullptr; }
  void destroy_stream(int, void*) const noexcept override {}
  void synchronize(int, void*) const override {}
  void copy(int, void*, void* to, const void* from, size_t bytes) const override {
    std::memmove(to, from, bytes);
  }
  void fill(int, void*, void* data, int byte, size_t bytes) const override {
    // The first touch of a page has the system clear it, on the core that touches it.
    constexpr size_t kPart = 4 * kHugePageBytes;
    if (bytes <= kPart) return void(std::memset(data, byte, bytes));
    const auto parts = static_cast<int64_t>((bytes + kPart - 1) / kPart);
    ThreadPool::shared().run(parts, [&](int64_t part, int) {
      const size_t begin = part * kPart;
      std::memset(static_cast<std::byte*>(data) + begin, byte, std::min(kPart, bytes - begin));
    });
  }

  void* make_event(int) const override { return new Mark; }
  void destroy_event(int, void* event) const noexcept override { delete static_cast<Mark*>(event); }
  void record_event(int, void* event, void*, bool) const override {
    *static_cast<Mark*>(event) = Clock::now();
  }
  void synchronize_event(int, void*) const override {}
  double elapsed_us(int, void* start, void* end) const override {
    return std::chrono::duration<double, std::micro>(time_of(end) - time_of(start)).count();
  }

  void* capture(int, void*, const Launches& launches) const override {
    return new Launches(launches);
  }
  void replay(int, void* graph, void*) const override { (*static_cast<Launches*>(graph))(); }
  void destroy_graph(int, void* graph) const noexcept override {
    delete static_cast<Launches*>(graph);
  }

  void push_range(const char*) const override {}
  void pop_range() const noexcept override {}
};

}  // namespace

const Driver& cpu_driver() {
  static const CpuDriver driver;
  return driver;
}

}  // namespace cria
