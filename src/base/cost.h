// Cost: the arithmetic a kernel must do and the bytes it must move, whatever runs it.
#pragma once

namespace cria {

struct Cost {
  double flops = 0;
  double bytes_read = 0;
  double bytes_written = 0;

  constexpr double bytes() const { return bytes_read + bytes_written; }

  constexpr Cost& operator+=(const Cost& other) {
    flops += other.flops;
    bytes_read += other.bytes_read;
    bytes_written += other.bytes_written;
    return *this;
  }
  friend constexpr Cost operator+(Cost a, const Cost& b) { return a += b; }
};

}  // namespace cria
