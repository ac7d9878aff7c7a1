#include "kernels/operand.h"

#include <algorithm>
#include <cstring>

namespace cria::test {
namespace {

// Of a shape whose rows count as one at least, so that views into an empty operand point somewhere.
size_t room_of(std::initializer_list<int> shape) {
  size_t n = 1;
  for (const int extent : shape) n *= static_cast<size_t>(std::max(extent, 1));
  return n;
}

}  // namespace

const char* name_of(Placement placement) {
  switch (placement) {
    case Placement::kTight:
      return "tight";
    case Placement::kPitched:
      return "pitched";
    case Placement::kPadded:
      return "padded";
    case Placement::kMisaligned:
      return "misaligned";
  }
  return "unknown";
}

OperandBase::OperandBase(std::string name, std::initializer_list<int> shape, size_t element_bytes,
                         Role role)
    : name_(std::move(name)),
      role_(role),
      element_bytes_(element_bytes),
      home_(room_of(shape) * element_bytes) {
  const int* extent = shape.begin();
  if (shape.size() == 3) batch_ = *extent++;
  if (shape.size() >= 2) batch_rows_ = *extent++;
  cols_ = *extent;
  rows_ = int64_t{batch_} * batch_rows_;
}

bool OperandBase::has_gaps(Placement placement) const {
  if (placement == Placement::kPitched) return pitch_of(part_cols()) != part_cols();
  return placement != Placement::kTight;
}

void OperandBase::place(Placement placement) {
  const auto step = static_cast<int64_t>(16 / element_bytes_);
  first_ = 0, part_step_ = part_cols(), ld_ = cols_;
  if (placement == Placement::kPitched)
    part_step_ = pitch_of(part_cols()), ld_ = parts_ * part_step_;
  if (placement == Placement::kPadded) first_ = step, ld_ = (cols_ + step - 1) / step * step + step;
  if (placement == Placement::kMisaligned) first_ = 1, ld_ = cols_ + 1 + cols_ % 2;
  int64_t end = first_;
  if (rows_ > 0 && cols_ > 0)  // pitched memory has the gap behind the last row, too
    end += placement == Placement::kPitched ? rows_ * ld_ : (rows_ - 1) * ld_ + cols_;
  memory_ = std::make_unique<Guarded<std::byte>>(static_cast<size_t>(end) * element_bytes_);
  if (const std::byte* from = initial()) {
    const size_t bytes = static_cast<size_t>(part_cols()) * element_bytes_;
    for (int64_t i = 0; bytes > 0 && i < rows_ * parts_; ++i)
      std::copy_n(from + i * bytes, bytes,
                  memory_->data() + static_cast<size_t>(start_of(i)) * element_bytes_);
  }
  const auto image = memory_->image();
  before_.assign(image.begin(), image.end());
}

void OperandBase::send(Device device) {
  const auto image = memory_->image();
  if (device == kCpu) {
    place_ = image.data();
    return;
  }
  if (!buffer_ || buffer_->bytes() != image.size())
    buffer_ = std::make_unique<Buffer>(device, image.size());
  buffer_->copy_from_host(image.data(), image.size());
  place_ = buffer_->as<std::byte>();
}

void OperandBase::fetch() {
  const auto image = memory_->image();
  if (buffer_) buffer_->copy_to_host(image.data(), image.size());
}

void OperandBase::check() const {
  memory_->check(name_);
  const std::byte* now = memory_->data();
  const std::byte* before = before_.data() + kGuardBytes;
  const auto changed = [&](int64_t from, int64_t to) {  // elements, counted from the first byte
    return std::memcmp(now + from * element_bytes_, before + from * element_bytes_,
                       static_cast<size_t>(to - from) * element_bytes_) != 0;
  };
  if (changed(0, first_)) ADD_FAILURE() << name_ << ": written before its first element";
  const int64_t parts = cols_ > 0 ? rows_ * parts_ : 0;
  const auto end = static_cast<int64_t>(memory_->size() / element_bytes_);
  const size_t bytes = static_cast<size_t>(part_cols()) * element_bytes_;
  std::vector<std::byte> elements(static_cast<size_t>(parts) * bytes);
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t start = start_of(i), stop = start + part_cols();
    std::copy_n(now + start * element_bytes_, bytes, elements.data() + i * bytes);
    if (role_ == Role::kInput && changed(start, stop))
      ADD_FAILURE() << name_ << ": an input, but row " << i / parts_ << " was changed";
    if (changed(stop, i + 1 < parts ? start_of(i + 1) : end))
      ADD_FAILURE() << name_ << ": written behind part " << i % parts_ << " of row " << i / parts_;
  }
  if (writes_values()) check_values(elements);
}

}  // namespace cria::test
