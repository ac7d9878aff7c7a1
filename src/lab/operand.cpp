#include "lab/operand.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/rng.h"

namespace cria {
namespace {

constexpr int64_t kPeriod = 1048573;

const std::vector<float>& normal_numbers() {
  static const std::vector<float> numbers = [] {
    std::vector<float> out(kPeriod);
    Rng(20240607).fill_normal(out, 1.0f);
    return out;
  }();
  return numbers;
}

float value_at(const Values& values, int64_t i) {
  const int64_t place = (i + static_cast<int64_t>(values.phase % kPeriod)) % kPeriod;
  return values.mean + values.scale * normal_numbers()[place];
}

// One period goes to the device; copies of what is there fill the rest.
template <class T>
void fill(Stream& stream, T* data, int64_t size, const Values& values) {
  const int64_t first = std::min(size, kPeriod);
  std::vector<T> period(first);
  for (int64_t i = 0; i < first; ++i) period[i] = from_float<T>(value_at(values, i));
  stream.copy(data, period.data(), first * sizeof(T));
  stream.synchronize();
  for (int64_t done = first; done < size;) {
    const int64_t more = std::min(size - done, done / kPeriod * kPeriod);
    stream.copy(data + done, data, more * sizeof(T));
    done += more;
  }
}

size_t bytes_of(DType dtype, int64_t batch, int64_t rows, int64_t cols) {
  constexpr double kMostBytes = 0x1p62;
  if (double(batch) * double(rows) * double(cols) * size_of(dtype) > kMostBytes)
    fail_f("no memory holds {} x {} x {} elements of {}: use smaller shapes", batch, rows, cols,
           name_of(dtype));
  return static_cast<size_t>(batch) * rows * cols * size_of(dtype);
}

}  // namespace

Operand::Operand(Stream& stream, DType dtype, int batch, int rows, int cols, Values values)
    : dtype_(dtype),
      batch_(batch),
      rows_(rows),
      cols_(cols),
      values_(values),
      buffer_(stream.device(), bytes_of(dtype, batch, rows, cols)) {
  with_dtype(dtype, [&](auto t) { fill(stream, buffer_.as<decltype(t)>(), size(), values); });
}

Operand::Operand(Stream& stream, DType dtype, int batch, int rows, int cols)
    : dtype_(dtype),
      batch_(batch),
      rows_(rows),
      cols_(cols),
      buffer_(stream.device(), bytes_of(dtype, batch, rows, cols)) {
  poison(stream);
}

void Operand::poison(Stream& stream) { stream.fill(data(), 0xff, bytes()); }

std::vector<double> Operand::held(int64_t begin, int64_t count, int64_t stride) const {
  std::vector<double> out(count);
  with_dtype(dtype_, [&](auto t) {
    using T = decltype(t);
    for (int64_t i = 0; i < count; ++i)
      out[i] = to_float(from_float<T>(value_at(values_, begin + i * stride)));
  });
  return out;
}

double Operand::held(int64_t index) const {
  return with_dtype(dtype_, [&](auto t) {
    return double{to_float(from_float<decltype(t)>(value_at(values_, index)))};
  });
}

template <class F>
Exact Operand::sum_of(F term) const {
  const auto sum_first = [&](int64_t count) {
    Exact sum;
    for (double v : held(0, count)) sum.value += term(v), sum.norm += std::abs(term(v));
    return sum;
  };
  const Exact rest = sum_first(size() % kPeriod);
  if (size() < kPeriod) return rest;
  const Exact period = sum_first(kPeriod);
  const double periods = double(size() / kPeriod);
  return {periods * period.value + rest.value, periods * period.norm + rest.norm};
}

Exact Operand::sum() const {
  return sum_of([](double v) { return v; });
}
Exact Operand::sum_squares() const {
  return sum_of([](double v) { return v * v; });
}

std::vector<double> Operand::fetched(int64_t begin, int64_t count) const {
  std::vector<double> out(count);
  with_dtype(dtype_, [&](auto t) {
    using T = decltype(t);
    std::vector<T> raw(count);
    buffer_.copy_to_host(raw.data(), count * sizeof(T), begin * sizeof(T));
    for (int64_t i = 0; i < count; ++i) out[i] = to_float(raw[i]);
  });
  return out;
}

std::vector<uint16_t> Operand::fetched_bits(int64_t begin, int64_t count) const {
  require(size_of(dtype_) == sizeof(uint16_t), "the bits of a 16-bit operand were asked for");
  std::vector<uint16_t> out(count);
  buffer_.copy_to_host(out.data(), count * sizeof(uint16_t), begin * sizeof(uint16_t));
  return out;
}

}  // namespace cria
