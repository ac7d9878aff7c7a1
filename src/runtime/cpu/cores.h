// What the operating system says about this machine's CPU.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace cria {

// Cores this process may use: its affinity mask, lowered by a control group's CPU quota; >= 1.
int available_cores();

std::string cpu_name();
std::string instruction_set();  // the widest vectors of the CPU's kernels
size_t memory_bytes();          // of the machine, lowered by a control group's limit
// What can still be taken without swapping, lowered by what control groups have left; the page cache
// counts as free.
size_t available_memory_bytes();
// Of this process: resident now, and at most since it began or since the last call of forget_....
size_t resident_bytes();
size_t peak_resident_bytes();
void forget_peak_resident_bytes();
size_t l2_cache_bytes();  // of one core

// What this process's cores can keep out of memory: the last level of the caches, all instances of
// it that any of these cores uses, others of the machine left out; 0 when unknown. NOTE: sysconf()
// gives one instance with some C libraries, all of the machine's with others.
size_t last_level_cache_bytes();

// The caches of this level, or of the last one when it is 0, that these cores use, as the kernel
// describes them in a folder like /sys/devices/system/cpu; 0 when it does not.
size_t cache_bytes(const std::filesystem::path& folder, std::span<const int> cores, int level);

double cpu_clock_mhz();  // as of now; 0 when unknown

}  // namespace cria
