#include "tile/trace/relocation.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cria::tile {
namespace {

constexpr uint64_t kAlignment = 256;  // copies keep their address modulo this
constexpr uint64_t kGap = 4096;

}  // namespace

Relocation::Relocation(const OperandTable& operands) {
  std::vector<Span> all;
  for (const TracedOperand& t : operands.list())
    if (t.span() > 0) all.push_back({t.begin, t.begin + t.span() * t.element_bytes, t.writable});
  std::sort(all.begin(), all.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  for (Span& s : all) {
    if (!spans_.empty() && s.begin < spans_.back().end) {
      spans_.back().end = std::max(spans_.back().end, s.end);
      spans_.back().writable |= s.writable;
    } else {
      spans_.push_back(std::move(s));
    }
  }
  for (Span& s : spans_) {
    const uint64_t bytes = s.end - s.begin;
    s.memory = std::make_unique<std::byte[]>(bytes + 2 * kGap + 2 * kAlignment);
    const uint64_t start = reinterpret_cast<uint64_t>(s.memory.get()) + kGap;
    s.copy = s.memory.get() + kGap + (s.begin - start) % kAlignment;
    std::memcpy(s.copy, reinterpret_cast<const void*>(s.begin), bytes);
  }
}

uint64_t Relocation::moved(uint64_t begin) const {
  for (const Span& s : spans_)
    if (begin >= s.begin && begin < s.end)
      return reinterpret_cast<uint64_t>(s.copy) + (begin - s.begin);
  return begin;
}

void Relocation::restore() const {
  for (const Span& s : spans_)
    if (s.writable) std::memcpy(reinterpret_cast<void*>(s.begin), s.copy, s.end - s.begin);
}

}  // namespace cria::tile
