// What the operating system says about this machine's CPU.
#pragma once

#include <cstddef>
#include <string>

namespace cria {

// Cores this process may use: its affinity mask, lowered by a control group's CPU quota; >= 1.
int available_cores();

std::string cpu_name();
size_t memory_bytes();  // of the machine, lowered by a control group's limit
size_t l2_cache_bytes();
double cpu_clock_mhz();  // as of now; 0 when unknown

}  // namespace cria
