// One operand of a kernel test: a matrix of known values, which can be laid into guarded memory in
// several ways, and whose memory is checked byte by byte after a run. See harness.h.
#pragma once

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/rng.h"
#include "base/tensor.h"
#include "runtime/buffer.h"
#include "support/compare.h"
#include "support/guarded.h"

namespace cria::test {

enum class Role {
  kInput,
  kOutput,
  kBoth,
  kScratch
};  // scratch: written, but its values are not checked

// How an operand's rows lie in memory. Elements between rows are poison.
enum class Placement {
  kTight,       // without gaps
  kPitched,     // every row, and every part of one, begins at whole 8 elements: see pitch_of
  kPadded,      // whole 16 bytes before every row
  kMisaligned,  // the first element off by one, and an odd number of elements from row to row
};
inline constexpr Placement kPlacements[] = {Placement::kTight, Placement::kPitched,
                                            Placement::kPadded, Placement::kMisaligned};
const char* name_of(Placement placement);

class OperandBase {
 public:
  OperandBase(std::string name, std::initializer_list<int> shape, size_t element_bytes, Role role);
  virtual ~OperandBase() = default;

  // Rows are so many equal parts, and no view crosses from one into another: heads, gate and up.
  void set_parts(int parts) { parts_ = parts; }

  // Host memory as before a run, laid out like this.
  void place(Placement placement);
  // Whether this is so in another way than tight.
  bool has_gaps(Placement placement) const;
  // Puts the bytes to where kernels of this device will work on them, and fetches them back.
  void send(Device device);
  void fetch();
  // Fails for a changed guard, a changed gap, a changed input, or an output out of tolerance.
  void check() const;

  // If t views this operand, makes it view the operand's present place.
  template <class E>
  bool relocate(Tensor<E>& t) const {
    const auto* at = reinterpret_cast<const std::byte*>(t.data);
    if (at < home_.data() || at > home_.data() + home_.size()) return false;
    EXPECT_LE(t.cols, part_cols()) << name_ << ": a view of several parts of its rows";
    const int64_t offset = (at - home_.data()) / static_cast<int64_t>(element_bytes_);
    auto* base = reinterpret_cast<std::remove_cv_t<E>*>(place_ + kGuardBytes);
    t.data = base + first_ + moved(offset);
    t.ld = moved(t.ld), t.batch_stride = moved(t.batch_stride),
    t.head_stride = moved(t.head_stride);
    return true;
  }

 protected:
  virtual const std::byte* initial() const = 0;  // elements without gaps, or null for poison
  virtual void check_values(std::span<const std::byte> elements) const = 0;
  bool reads_values() const { return role_ == Role::kInput || role_ == Role::kBoth; }
  bool writes_values() const { return role_ == Role::kOutput || role_ == Role::kBoth; }
  std::byte* home() { return home_.data(); }
  int64_t elements() const { return rows_ * cols_; }
  int64_t index(int64_t b, int64_t r, int64_t c) const { return (b * batch_rows_ + r) * cols_ + c; }

  std::string name_;
  Role role_;
  int batch_ = 1, batch_rows_ = 1;
  int64_t rows_ = 1, cols_ = 0;

 private:
  int64_t part_cols() const { return cols_ / parts_; }
  // Where a part begins, counted through all rows.
  int64_t start_of(int64_t part) const {
    return first_ + part / parts_ * ld_ + part % parts_ * part_step_;
  }
  // A distance in elements without gaps, as it is between rows of the present place, and between
  // parts of a row.
  int64_t moved(int64_t distance) const {
    if (cols_ == 0) return distance;
    const int64_t rest = distance % cols_;
    return distance / cols_ * ld_ + rest / part_cols() * part_step_ + rest % part_cols();
  }

  size_t element_bytes_;
  int parts_ = 1;
  Guarded<std::byte>
      home_;  // where the views in a test's arguments point to; never read, never empty
  int64_t first_ = 0, ld_ = 0, part_step_ = 0;
  std::unique_ptr<Guarded<std::byte>> memory_;
  std::vector<std::byte> before_;  // image of memory_ before the run
  std::unique_ptr<Buffer> buffer_;
  std::byte* place_ = nullptr;  // image that kernels work on
};

template <class E>
class Operand : public OperandBase {
 public:
  Operand(std::string name, std::initializer_list<int> shape, Role role, double stddev)
      : OperandBase(std::move(name), shape, sizeof(E), role), values_(elements()) {
    if (writes_values()) want_.resize(elements());
    if (!reads_values()) return;
    Rng rng(std::hash<std::string>{}(name_));
    for (E& v : values_) v = from_float<E>(static_cast<float>(rng.normal() * stddev));
  }

  // Before the run, as rounded to the operand's type.
  double operator()(int64_t r, int64_t c) const { return (*this)(0, r, c); }
  double operator()(int64_t b, int64_t r, int64_t c) const {
    return to_float(values_[index(b, r, c)]);
  }
  void set(int64_t r, int64_t c, double x) { values_[index(0, r, c)] = from_float<E>(float(x)); }
  // All of them, row by row.
  std::vector<double> values() const { return to_double(std::span<const E>(values_)); }

  // After the run.
  double& want(int64_t r, int64_t c) { return want(0, r, c); }
  double& want(int64_t b, int64_t r, int64_t c) { return want_[index(b, r, c)]; }
  Tolerance tolerance;
  // The tolerance's, for an element: once one is asked for, all have one of their own.
  double& error(int64_t r, int64_t c) { return error(0, r, c); }
  double& error(int64_t b, int64_t r, int64_t c) {
    errors_.resize(want_.size());
    return errors_[index(b, r, c)];
  }

  E* data() { return reinterpret_cast<E*>(home()); }
  operator Tensor<E>() {
    return {data(), batch_, batch_rows_, static_cast<int>(cols_), cols_, batch_rows_ * cols_};
  }
  operator Tensor<const E>() { return static_cast<Tensor<E>>(*this); }

 protected:
  const std::byte* initial() const override {
    return reads_values() ? reinterpret_cast<const std::byte*>(values_.data()) : nullptr;
  }
  void check_values(std::span<const std::byte> elements) const override {
    const std::span got(reinterpret_cast<const E*>(elements.data()), want_.size());
    Tolerance typed = tolerance;
    typed.out = dtype_of<E>;
    expect_close(got, want_, typed, name_, cols_, errors_);
  }

 private:
  std::vector<E> values_;
  std::vector<double> want_, errors_;
};

// Floats in halves (base/dtype.h), read and then overwritten: two operands, the high halves first.
// Together they are checked as the floats they are.
class HighHalves : public Operand<bf16> {
 public:
  HighHalves(std::string name, std::initializer_list<int> shape, double stddev)
      : Operand(std::move(name), shape, Role::kBoth, stddev) {}
  const std::vector<bf16>& seen() const { return seen_; }  // after the run

 protected:
  void check_values(std::span<const std::byte> elements) const override {
    seen_.resize(this->elements());
    std::memcpy(seen_.data(), elements.data(), elements.size());
  }

 private:
  mutable std::vector<bf16> seen_;
};

class LowHalves : public OperandBase {
 public:
  LowHalves(const HighHalves& high, std::string name, std::initializer_list<int> shape)
      : OperandBase(std::move(name), shape, sizeof(int16_t), Role::kBoth),
        high_(high),
        low_(elements()),
        want_(elements()) {
    Rng rng(std::hash<std::string>{}(name_));
    for (int16_t& l : low_) l = static_cast<int16_t>(rng.bits());
  }

  // The floats before the run, and after it.
  double operator()(int64_t r, int64_t c) const {
    return join_halves(static_cast<float>(high_(r, c)), low_[index(0, r, c)]);
  }
  double& want(int64_t r, int64_t c) { return want_[index(0, r, c)]; }
  Tolerance tolerance;

  operator Tensor<int16_t>() {
    return batch_of(reinterpret_cast<int16_t*>(home()), batch_, batch_rows_,
                    static_cast<int>(cols_));
  }

 protected:
  const std::byte* initial() const override {
    return reinterpret_cast<const std::byte*>(low_.data());
  }
  void check_values(std::span<const std::byte> elements) const override {
    std::vector<int16_t> low(low_.size());
    std::memcpy(low.data(), elements.data(), elements.size());
    std::vector<float> got(low.size());
    for (size_t i = 0; i < got.size(); ++i) {
      got[i] = join_halves(to_float(high_.seen()[i]), low[i]);
      if (high_half(got[i]).bits != high_.seen()[i].bits)
        ADD_FAILURE() << name_ << ": " << got[i] << " at " << i << " is not split as it should be";
    }
    expect_close(got, want_, tolerance, name_, cols_);
  }

 private:
  const HighHalves& high_;
  std::vector<int16_t> low_;
  std::vector<double> want_;
};

}  // namespace cria::test
