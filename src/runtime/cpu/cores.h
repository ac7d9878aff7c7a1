// What the operating system says about this machine's CPU.
#pragma once

#include <cstddef>
#include <string>

namespace cria {

// Cores this process may use: its affinity mask, lowered by a control group's CPU quota; >= 1.
int available_cores();

std::string cpu_name();
size_t memory_bytes();  // of the machine, lowered by a control group's limit
// What can still be taken without swapping, lowered by what control groups have left; the page cache
// counts as free.
size_t available_memory_bytes();
// Of this process: resident now, and at most since it began or since the last call of forget_....
size_t resident_bytes();
size_t peak_resident_bytes();
void forget_peak_resident_bytes();
size_t l2_cache_bytes();
double cpu_clock_mhz();  // as of now; 0 when unknown

}  // namespace cria
