// Where tests still look for it.
#pragma once

#include "lab/diff.h"
