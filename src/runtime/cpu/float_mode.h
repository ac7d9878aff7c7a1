// Flushes subnormal numbers to zero (FTZ) and reads them as zero (DAZ) in the calling thread while
// the object lives. NOTE: x86 handles them in microcode; SiLU of large negatives ran 7x slower.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace cria {

class FlushSubnormals {
 public:
  FlushSubnormals() : before_(read()) { write(before_ | kBits); }
  ~FlushSubnormals() { write(before_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
#if defined(__SSE2__)
  using Word = uint32_t;
  static constexpr Word kBits = 0x8040;  // MXCSR: FTZ is bit 15, DAZ bit 6
  static Word read() { return _mm_getcsr(); }
  static void write(Word word) { _mm_setcsr(word); }
#elif defined(__aarch64__) && defined(__GNUC__) && !defined(__clang__)
  using Word = uint32_t;
  static constexpr Word kBits = 1u << 24;  // FPCR: FZ
  static Word read() { return __builtin_aarch64_get_fpcr(); }
  static void write(Word word) { __builtin_aarch64_set_fpcr(word); }
#else
  using Word = uint32_t;
  static constexpr Word kBits = 0;
  static Word read() { return 0; }
  static void write(Word) {}  // this CPU keeps its own ways
#endif

  Word before_;
};

// Tells the core that it is waiting in a loop.
inline void cpu_relax() {
#if defined(__SSE2__)
  _mm_pause();
#endif
}

}  // namespace cria
