// The CUDA target: a program is a thread block. See program_ampere.h and program_hopper.h for the
// two lowerings, launch.h for how a program starts.
#pragma once

#include "tile/cuda/launch.h"
