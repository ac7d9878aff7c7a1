// Guarded: n elements with guard bytes on both sides, right up against the first and the last, in
// one host allocation. The elements start as NaN (or -1), so what a kernel fails to write shows.
// For device memory: copy image() there, run on the pointer kGuardBytes in, copy it back, check().
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>

namespace cria::test {

inline constexpr size_t kGuardBytes = 256;
inline constexpr std::byte kGuardByte{0xa5};
inline constexpr std::byte kPoisonByte{0xff};

template <class T>
class Guarded {
 public:
  explicit Guarded(size_t count)
      : count_(count),
        bytes_(new (std::align_val_t{kGuardBytes}) std::byte[count * sizeof(T) + 2 * kGuardBytes]) {
    std::ranges::fill(image(), kGuardByte);
    std::ranges::fill(image().subspan(kGuardBytes, count * sizeof(T)), kPoisonByte);
  }
  explicit Guarded(std::span<const T> values) : Guarded(values.size()) {
    std::ranges::copy(values, data());
  }

  T* data() { return reinterpret_cast<T*>(bytes_.get() + kGuardBytes); }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.get() + kGuardBytes); }
  size_t size() const { return count_; }
  T* begin() { return data(); }
  T* end() { return data() + count_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + count_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }

  // The whole allocation, guards included.
  std::span<std::byte> image() { return {bytes_.get(), count_ * sizeof(T) + 2 * kGuardBytes}; }
  std::span<const std::byte> image() const {
    return {bytes_.get(), count_ * sizeof(T) + 2 * kGuardBytes};
  }

  // Fails when a guard byte has changed; the offset is in bytes from the nearer end of the
  // elements.
  void check(std::string_view name) const {
    const auto all = image();
    const auto changed = [](std::byte b) { return b != kGuardByte; };
    const auto before = all.first(kGuardBytes);
    const auto after = all.last(kGuardBytes);
    if (auto hit = std::find_if(before.rbegin(), before.rend(), changed); hit != before.rend()) {
      ADD_FAILURE() << name << ": written " << hit - before.rbegin() + 1
                    << " bytes before its start";
    }
    if (auto hit = std::find_if(after.begin(), after.end(), changed); hit != after.end()) {
      ADD_FAILURE() << name << ": written " << hit - after.begin() << " bytes past its end";
    }
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { operator delete[](p, std::align_val_t{kGuardBytes}); }
  };
  size_t count_;
  std::unique_ptr<std::byte[], Free> bytes_;
};

}  // namespace cria::test
