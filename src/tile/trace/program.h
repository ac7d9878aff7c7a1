// The trace target: the CPU's program with a probe that records. See launch.h for how it starts.
#pragma once

#include "tile/trace/launch.h"
