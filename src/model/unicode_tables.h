// The ranges of unicode_tables.cpp, which tools/unicode-tables writes.
#pragma once

#include <span>

#include "model/unicode.h"

namespace cria {

struct ClassRange {
  char32_t first, last;
  CharClass kind;
};

extern const std::span<const ClassRange> kClassRanges;  // in order, without overlap

}  // namespace cria
