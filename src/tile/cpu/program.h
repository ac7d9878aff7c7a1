// The CPU target: a program is one task on one core. See launch.h for how programs start.
#pragma once

#include "tile/cpu/launch.h"
