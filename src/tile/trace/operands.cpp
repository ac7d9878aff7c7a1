#include "tile/trace/operands.h"

#include <algorithm>
#include <utility>

namespace cria::tile {
namespace {

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

}  // namespace

int64_t TracedOperand::span() const {
  if (batch <= 0 || rows <= 0 || cols <= 0) return 0;
  return (batch / heads - 1) * batch_stride + (heads - 1) * head_stride + (rows - 1) * ld + cols;
}

void OperandTable::add(TracedOperand operand) {
  operands_.push_back(std::move(operand));
  footprints_.emplace_back();
}

// Digit by digit, the largest stride first: heads may lie within rows, or rows within heads.
ElementIndex OperandTable::index_of(const TracedOperand& t, uint64_t address) {
  struct Digit {
    int count;
    int64_t stride, index;
  } digits[] = {
      {t.batch / t.heads, t.batch_stride, 0}, {t.heads, t.head_stride, 0}, {t.rows, t.ld, 0}};
  Digit* order[] = {&digits[0], &digits[1], &digits[2]};
  std::sort(order, order + 3, [](const Digit* a, const Digit* b) { return a->stride > b->stride; });
  int64_t rest = floor_div(static_cast<int64_t>(address - t.begin), t.element_bytes);
  for (Digit* d : order) {
    if (d->count <= 1 || d->stride <= 0) continue;
    d->index = floor_div(rest, d->stride);
    rest -= d->index * d->stride;
  }
  return {digits[0].index * t.heads + digits[1].index, digits[2].index, rest};
}

bool OperandTable::contains(const TracedOperand& t, uint64_t address) {
  if (t.span() == 0 || address < t.begin) return false;
  const ElementIndex i = index_of(t, address);
  return i.batch >= 0 && i.batch < t.batch && i.row >= 0 && i.row < t.rows && i.col >= 0 &&
         i.col < t.cols;
}

int OperandTable::find(uint64_t address, bool for_writing) const {
  int found = -1;
  for (int i = 0; i < static_cast<int>(operands_.size()); ++i) {
    if (!contains(operands_[i], address)) continue;
    if (operands_[i].writable == for_writing) return i;  // among aliases, the one meant
    if (found < 0) found = i;
  }
  return found;
}

int OperandTable::nearest(uint64_t address) const {
  int found = -1;
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < static_cast<int>(operands_.size()); ++i) {
    const TracedOperand& t = operands_[i];
    const int64_t elements = t.span();
    if (elements == 0) continue;
    const uint64_t end = t.begin + static_cast<uint64_t>(elements) * t.element_bytes;
    const uint64_t distance = address < t.begin ? t.begin - address
                              : address < end   ? 0  // between its rows
                                                : address - end;
    if (distance < least) least = distance, found = i;
  }
  return found;
}

void OperandTable::touch(int operand, uint64_t address, int bytes, bool write) {
  const TracedOperand& t = operands_[operand];
  Footprint& f = footprints_[operand];
  auto& flags = write ? f.written : f.read;
  if (flags.empty()) flags.resize(t.span());
  const int64_t first = static_cast<int64_t>(address - t.begin) / t.element_bytes;
  for (int64_t e = first; e < first + bytes / t.element_bytes; ++e) {
    if (flags[e]) continue;
    flags[e] = true;
    ++(write ? f.written_count : f.read_count);
  }
}

int64_t OperandTable::unique_bytes(int operand, bool written) const {
  const Footprint& f = footprints_[operand];
  return (written ? f.written_count : f.read_count) * operands_[operand].element_bytes;
}

}  // namespace cria::tile
