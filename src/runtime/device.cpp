#include "runtime/device.h"

#include <charconv>

#include "base/format.h"
#include "runtime/driver.h"

namespace cria {
namespace {

[[noreturn]] void fail_unknown_device(std::string_view text) {
  fail_f("unknown device '{}': use cpu, cuda, cuda:N or auto", text);
}

int parse_index(std::string_view text, std::string_view digits) {
  int index = -1;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc() || end != digits.data() + digits.size() || index < 0) {
    fail_unknown_device(text);
  }
  return index;
}

// All devices, described once.
const DeviceInfo& description_of(Device device) {
  static const DeviceInfo cpu = describe(kCpu);
  static const std::vector<DeviceInfo> cuda = [] {
    std::vector<DeviceInfo> all;
    for (int i = 0; i < cuda_driver().device_count(); ++i) {
      all.push_back(describe(Device{Backend::cuda, i}));
    }
    return all;
  }();
  if (device.backend == Backend::cpu) return cpu;
  require(device.index >= 0 && device.index < static_cast<int>(cuda.size()),
          "there is no such CUDA device: devices() lists those present");
  return cuda[device.index];
}

Device cuda_device(int index) {
  int count = cuda_driver().device_count();
  if (count == 0) fail_f("no CUDA device: {}", cuda_driver().absent_reason());
  if (index >= count) {
    fail_f("there is no device cuda:{}: this machine has {} CUDA device{}, cuda:0 to cuda:{}",
           index, count, count == 1 ? "" : "s", count - 1);
  }
  if (const std::string why = cuda_driver().why_unusable(index); !why.empty()) {
    fail_f("cuda:{} cannot be used: {}; or use --device cpu", index, why);
  }
  return {Backend::cuda, index};
}

// Says once which CUDA devices `auto` passed over.
void say_passed_over(Device chosen) {
  [[maybe_unused]] static const bool said = [&] {
    const Driver& cuda = cuda_driver();
    const int passed = chosen.backend == Backend::cuda ? chosen.index : cuda.device_count();
    for (int i = 0; i < passed; ++i) {
      fmt::print(stderr, "cria: warning: cuda:{} is left out: {}\n", i, cuda.why_unusable(i));
    }
    return true;
  }();
}

}  // namespace

Device parse_device(std::string_view text) {
  constexpr std::string_view kCudaPrefix = "cuda:";
  if (text == "cpu") return kCpu;
  if (text == "cuda") return devices().size() > 1 ? devices()[1] : cuda_device(0);
  if (text == "auto") {
    const Device chosen = devices().size() > 1 ? devices()[1] : kCpu;
    say_passed_over(chosen);
    return chosen;
  }
  if (text.starts_with(kCudaPrefix)) {
    return cuda_device(parse_index(text, text.substr(kCudaPrefix.size())));
  }
  fail_unknown_device(text);
}

std::string name_of(Device device) {
  return device.backend == Backend::cpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

std::vector<Device> devices() {
  std::vector<Device> found = {kCpu};
  for (int i = 0; i < cuda_driver().device_count(); ++i) {
    if (cuda_driver().why_unusable(i).empty()) found.push_back({Backend::cuda, i});
  }
  return found;
}

DeviceInfo describe(Device device) { return driver_of(device).describe(device.index); }

int compute_capability(Device device) { return description_of(device).compute_capability; }

int core_count(Device device) { return description_of(device).cores; }

void make_current(Device device) { driver_of(device).make_current(device.index); }

}  // namespace cria
