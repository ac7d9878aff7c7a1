// Devices that cria can run on, and what is known about them without measuring.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cria {

enum class Backend { cpu, cuda };

struct Device {
  Backend backend = Backend::cpu;
  int index = 0;

  bool operator==(const Device&) const = default;
};

inline constexpr Device kCpu{Backend::cpu, 0};

// Figures as the vendor's interface reports them; 0 or empty where the device has no such thing.
struct DeviceInfo {
  std::string name;
  int cores = 0;  // multiprocessors, or CPU cores this process may use
  size_t memory_bytes = 0;
  size_t l2_bytes = 0;
  int compute_capability = 0;         // major * 10 + minor
  size_t shared_bytes_per_block = 0;  // with opt-in
  size_t shared_bytes_per_core = 0;
  double clock_mhz = 0;
  double memory_clock_mhz = 0;
  std::string driver_version;
  std::string runtime_version;
};

// "cpu", "cuda" (the first one), "cuda:1", or "auto": the first CUDA device, else the CPU. Of CUDA
// devices only those count that this binary has code for; `auto` says on stderr which it left out.
Device parse_device(std::string_view text);

// "cpu" or "cuda:0"; parse_device() reads it back.
std::string name_of(Device device);

// Every device that can be used, the CPU first.
std::vector<Device> devices();

DeviceInfo describe(Device device);

// DeviceInfo's figures of these names, cheap enough to ask for at every launch.
int compute_capability(Device device);
int core_count(Device device);

// Makes the calling thread's launches go to this device. Streams, buffers and events do it
// themselves; only code that launches into Stream::native() needs to call it.
void make_current(Device device);

}  // namespace cria
