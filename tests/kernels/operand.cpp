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

void OperandBase::place(Placement placement) {
  const auto step = static_cast<int64_t>(16 / element_bytes_);
  first_ = 0, ld_ = cols_;
  if (placement == Placement::kPadded) first_ = step, ld_ = (cols_ + step - 1) / step * step + step;
  if (placement == Placement::kMisaligned) first_ = 1, ld_ = cols_ + 1 + cols_ % 2;
  const int64_t last = rows_ > 0 && cols_ > 0 ? first_ + (rows_ - 1) * ld_ + cols_ : first_;
  memory_ = std::make_unique<Guarded<std::byte>>(static_cast<size_t>(last) * element_bytes_);
  if (const std::byte* from = initial()) {
    const size_t row_bytes = static_cast<size_t>(cols_) * element_bytes_;
    for (int64_t r = 0; r < rows_; ++r)
      std::copy_n(from + r * row_bytes, row_bytes,
                  memory_->data() + static_cast<size_t>(first_ + r * ld_) * element_bytes_);
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
  const size_t row_bytes = static_cast<size_t>(cols_) * element_bytes_;
  const auto changed = [&](int64_t from, int64_t to) {  // elements, counted from the first byte
    return std::memcmp(now + from * element_bytes_, before + from * element_bytes_,
                       static_cast<size_t>(to - from) * element_bytes_) != 0;
  };
  if (changed(0, first_)) ADD_FAILURE() << name_ << ": written before its first element";
  std::vector<std::byte> elements(static_cast<size_t>(rows_) * row_bytes);
  for (int64_t r = 0; cols_ > 0 && r < rows_; ++r) {
    const int64_t start = first_ + r * ld_;
    std::copy_n(now + start * element_bytes_, row_bytes, elements.data() + r * row_bytes);
    if (role_ == Role::kInput && changed(start, start + cols_))
      ADD_FAILURE() << name_ << ": an input, but row " << r << " was changed";
    if (r + 1 < rows_ && changed(start + cols_, start + ld_))
      ADD_FAILURE() << name_ << ": written between rows " << r << " and " << r + 1;
  }
  if (writes_values()) check_values(elements);
}

}  // namespace cria::test
