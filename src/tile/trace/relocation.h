// Traced kernels run on copies of their operands, each with unused memory around it: an access past
// the end of one operand must not land in the next. Operands that overlap move together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tile/trace/operands.h"

namespace cria::tile {

class Relocation {
 public:
  // Copies what the operands cover.
  explicit Relocation(const OperandTable& operands);

  // Where the data at an operand's first element now lies.
  uint64_t moved(uint64_t begin) const;
  // Writes what may have changed back to where it came from.
  void restore() const;

 private:
  struct Span {
    uint64_t begin, end;
    bool writable;
    std::unique_ptr<std::byte[]> memory = {};
    std::byte* copy = nullptr;  // of the byte at `begin`
  };
  std::vector<Span> spans_;
};

}  // namespace cria::tile
