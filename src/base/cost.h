// Cost: the arithmetic a kernel must do and the bytes it must move, whatever runs it.
#pragma once

namespace cria {

struct Cost {
  double flops = 0;
  double bytes_read = 0;
  double bytes_written = 0;

  constexpr double bytes() const { return bytes_read + bytes_written; }

  // Arithmetic intensity, FLOP per byte; 0 when nothing is moved.
  constexpr double intensity() const { return bytes() > 0 ? flops / bytes() : 0; }

  constexpr Cost& operator+=(const Cost& other) {
    flops += other.flops;
    bytes_read += other.bytes_read;
    bytes_written += other.bytes_written;
    return *this;
  }
  friend constexpr Cost operator+(Cost a, const Cost& b) { return a += b; }
};

}  // namespace cria
