// A hand-written loop that reads memory and does next to nothing with it: the ceiling of
// reductions, which must not be measured with cria's own.
#pragma once

#include "lab/ceilings.h"

namespace cria::claims {

Ceiling read_loop_ceiling(Device device, double bytes);

}  // namespace cria::claims
