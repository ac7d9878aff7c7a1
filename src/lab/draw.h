// A text drawing of one warp's accesses: which words of which sectors its lanes use, or how many
// words each bank of shared memory has to give.
#pragma once

#include <string>

#include "lab/inspect.h"

namespace cria {

// The first access of the first warp at each source line. Colours, where asked for: green for a
// coalesced access, red for one that moves more sectors than it uses, yellow for bank conflicts.
std::string draw_warp(const Inspection& inspection, bool colours);

// One access.
std::string draw_access(const tile::AccessRecord& record, bool colours);

}  // namespace cria
