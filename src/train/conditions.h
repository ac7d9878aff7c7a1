// What the bits of a run depend on besides its settings: kept in its checkpoints, and compared when
// somebody goes on from one.
#pragma once

#include "base/json.h"
#include "train/trainer.h"

namespace cria {

// The device, its library of products, on a CPU the workers and the instruction set, and once a
// step has run the kernels' configurations and what the plan chose between kernels and library
// products: whatever tuning, the build or the machine chose.
Json conditions_of(const Trainer& trainer);

// What differs, as words for a sentence: "products by oneDNN 2.6.3 then, by OpenBLAS 0.3.21 now".
// Workers are left out, as they change no bits, and what one of the two does not tell. Empty if
// nothing differs.
std::string differences(const Json& then, const Json& now);

}  // namespace cria
