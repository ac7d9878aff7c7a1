#include "bench/read_loop.h"

namespace cria::claims {

Ceiling read_loop_ceiling(Device device, double bytes) { return read_ceiling(device, bytes); }

}  // namespace cria::claims
