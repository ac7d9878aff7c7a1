#include "lab/operand.h"

#include <algorithm>
#include <cmath>

#include "base/dims.h"
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

template <class T>
std::vector<T> first_values(int64_t count, const Values& values) {
  std::vector<T> out(count);
  for (int64_t i = 0; i < count; ++i) out[i] = from_float<T>(value_at(values, i));
  return out;
}

// One period goes to the device; copies of what is there fill the rest.
template <class T>
void fill(Stream& stream, T* data, int64_t size, const Values& values) {
  const int64_t first = std::min(size, kPeriod);
  const std::vector<T> period = first_values<T>(first, values);
  stream.copy(data, period.data(), first * sizeof(T));
  stream.synchronize();
  for (int64_t done = first; done < size;) {
    const int64_t more = std::min(size - done, done / kPeriod * kPeriod);
    stream.copy(data + done, data, more * sizeof(T));
    done += more;
  }
}

// Rows with gaps go to the device in chunks of memory, gaps included: no two begin at the same place
// of a period.
template <class T>
void fill_rows(Stream& stream, T* data, const Runs& runs, const Values& values) {
  constexpr size_t kChunk = 1 << 22;
  const std::vector<T> period = first_values<T>(std::min(runs.size(), kPeriod), values);
  std::vector<T> chunk;
  int64_t sent = 0;
  const auto send = [&] {
    stream.copy(data + sent, chunk.data(), chunk.size() * sizeof(T));
    stream.synchronize();
    sent += std::ssize(chunk);
    chunk.clear();
  };
  runs.each([&](int64_t place, int64_t index, int64_t count) {
    chunk.resize(place - sent);
    for (int64_t done = 0; done < count;) {
      const int64_t at = (index + done) % kPeriod, more = std::min(count - done, kPeriod - at);
      chunk.insert(chunk.end(), period.begin() + at, period.begin() + at + more);
      done += more;
      if (chunk.size() >= kChunk) send();
    }
  });
  send();
}

Operand::Layout lay_out(DType dtype, const OperandShape& s) {
  const int64_t rows = s.rows.size(), cols = s.cols.size();
  const bool col_gaps = !s.packed && cols > 1, row_gaps = col_gaps && rows > 1;
  const auto count = [](const Extent& e, int64_t pitch, bool gaps) {
    const int64_t exact = e.parts > 1 ? e.parts * pitch : e.width;
    const int64_t with_gaps = gaps ? e.parts * pitch : exact;
    if (with_gaps > kMostSize)
      fail_f(
          "{} parts of {} elements are {} with the gaps between them, more than the {} that "
          "kernels "
          "can count: make one of them smaller, or use --packed",
          e.parts, e.width, with_gaps, kMostSize);
    return Operand::Count{static_cast<int>(exact), static_cast<int>(with_gaps)};
  };
  const int64_t row_pitch = row_gaps ? pitch_of(int64_t{s.rows.width}) : s.rows.width;
  const int64_t col_pitch = col_gaps ? pitch_of(int64_t{s.cols.width}) : s.cols.width;
  const int64_t ld = s.cols.parts * col_pitch;
  constexpr double kMostBytes = 0x1p62;
  if (double(s.batch) * s.rows.parts * double(row_pitch) * double(ld) * size_of(dtype) > kMostBytes)
    fail_f("no memory holds {} x {} x {} elements of {}: use smaller shapes", s.batch, rows, cols,
           name_of(dtype));
  return {.rows = count(s.rows, row_pitch, row_gaps),
          .cols = count(s.cols, col_pitch, col_gaps),
          .ld = ld,
          .stride = s.rows.parts * row_pitch * ld,
          .runs = {.outer = int64_t{s.batch} * s.rows.parts,
                   .middle = int64_t{s.rows.width} * s.cols.parts,
                   .inner = s.cols.width,
                   .outer_step = row_pitch * ld,
                   .middle_step = col_pitch}};
}

}  // namespace

Operand::Operand(Stream& stream, DType dtype, const OperandShape& shape, Values values)
    : dtype_(dtype),
      shape_(shape),
      layout_(lay_out(dtype, shape)),
      values_(values),
      buffer_(stream.device(), memory_bytes()) {
  if (has_gaps()) clear(stream);
  with_dtype(dtype, [&](auto t) {
    using T = decltype(t);
    if (is_one_run())
      fill(stream, buffer_.as<T>(), size(), values);
    else
      fill_rows(stream, buffer_.as<T>(), layout_.runs, values);
  });
}

Operand::Operand(Stream& stream, DType dtype, const OperandShape& shape)
    : dtype_(dtype),
      shape_(shape),
      layout_(lay_out(dtype, shape)),
      buffer_(stream.device(), memory_bytes()) {
  if (has_gaps()) clear(stream);
  poison(stream);
}

size_t Operand::memory_bytes() const {
  return static_cast<size_t>(shape_.batch) * layout_.stride * size_of(dtype_);
}

bool Operand::has_gaps() const { return memory_bytes() > static_cast<size_t>(bytes()); }

bool Operand::is_one_run() const { return layout_.runs.extent() == size(); }

// The first run is filled, and copies of what is there do the rest.
void Operand::poison(Stream& stream) const {
  const Runs& r = layout_.runs;
  const int64_t element = size_of(dtype_);
  auto* memory = buffer_.as<std::byte>();
  const auto repeat = [&](int64_t count, int64_t step) {
    for (int64_t done = 1; done < count;) {
      const int64_t more = std::min(done, count - done);
      stream.copy(memory + done * step * element, memory, more * step * element);
      done += more;
    }
  };
  if (is_one_run()) return stream.fill(memory, 0xff, bytes());
  stream.fill(memory, 0xff, r.inner * element);
  repeat(r.middle, r.middle_step);
  repeat(r.outer, r.outer_step);
}

void Operand::clear(Stream& stream) const { stream.fill(data(), 0, memory_bytes()); }

void Operand::copy_from(Stream& stream, const Operand& other) const {
  require(other.dtype_ == dtype_ && other.memory_bytes() == memory_bytes(),
          "an operand was copied to one of another type or shape");
  stream.copy(data(), other.data(), memory_bytes());
}

int64_t Operand::place(int64_t index) const {
  const Runs& r = layout_.runs;
  const int64_t run = index / r.inner;
  return run / r.middle * r.outer_step + run % r.middle * r.middle_step + index % r.inner;
}

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

template <class T>
std::vector<T> Operand::fetch(int64_t begin, int64_t count) const {
  std::vector<T> out;
  if (count == 0) return out;
  const int64_t first = place(begin), end = begin + count;
  std::vector<T> memory(place(end - 1) + 1 - first);
  buffer_.copy_to_host(memory.data(), memory.size() * sizeof(T), first * sizeof(T));
  out.reserve(count);
  for (int64_t i = begin; i < end;) {
    const int64_t run = std::min(end - i, layout_.runs.inner - i % layout_.runs.inner);
    const auto from = memory.begin() + (place(i) - first);
    out.insert(out.end(), from, from + run);
    i += run;
  }
  return out;
}

std::vector<double> Operand::fetched(int64_t begin, int64_t count) const {
  std::vector<double> out;
  out.reserve(count);
  with_dtype(dtype_, [&](auto t) {
    for (const auto value : fetch<decltype(t)>(begin, count)) out.push_back(to_float(value));
  });
  return out;
}

std::vector<uint16_t> Operand::fetched_bits(int64_t begin, int64_t count) const {
  require(size_of(dtype_) == sizeof(uint16_t), "the bits of a 16-bit operand were asked for");
  return fetch<uint16_t>(begin, count);
}

}  // namespace cria
