// The tensors a traced kernel may touch. Every access is looked up here: which element of which
// operand, whether it lies inside, whether it may be written; and every byte touched is counted
// once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/tensor.h"

namespace cria::tile {

struct TracedOperand {
  std::string name;
  uint64_t begin;  // address of element (0, 0, 0)
  int element_bytes;
  bool writable;
  int batch, rows, cols;
  int64_t ld, batch_stride;
  int heads;
  int64_t head_stride;

  // Elements from the first to the last, gaps included.
  int64_t span() const;
};

struct ElementIndex {
  int64_t batch, row, col;
};

class OperandTable {
 public:
  template <class T>
  void add(const char* name, const Tensor<T>& t) {
    add(TracedOperand{name, reinterpret_cast<uint64_t>(t.data), static_cast<int>(sizeof(T)),
                      !std::is_const_v<T>, t.batch, t.rows, t.cols, t.ld, t.batch_stride, t.heads,
                      t.head_stride});
  }
  const std::vector<TracedOperand>& list() const { return operands_; }

  // The operand that a base address belongs to, one that may be written if asked for; -1 if none.
  int find(uint64_t address, bool for_writing) const;

  // The operand that begins or ends closest to an address outside all; -1 if there are none.
  int nearest(uint64_t address) const;

  // Element at an address relative to an operand, inside it or not.
  static ElementIndex index_of(const TracedOperand& operand, uint64_t address);
  static bool contains(const TracedOperand& operand, uint64_t address);

  // Notes that `bytes` at an address inside the operand were read or written.
  void touch(int operand, uint64_t address, int bytes, bool write);
  int64_t unique_bytes(int operand, bool written) const;

 private:
  struct Footprint {
    std::vector<bool> read, written;  // one flag per element of the span
    int64_t read_count = 0, written_count = 0;
  };
  void add(TracedOperand operand);

  std::vector<TracedOperand> operands_;
  std::vector<Footprint> footprints_;
};

}  // namespace cria::tile
