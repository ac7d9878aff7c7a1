// Rounding arrays of floats to a memory type. g++ 12 does not vectorise to the conversion
// instructions of f16, so they are called by name; everything else is a plain loop.
#pragma once

#include "base/dtype.h"
#include "tile/cpu/vector.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

template <class T>
CRIA_FN void narrow_array(const float* from, T* to, int n) {
  int i = 0;
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (std::is_same_v<T, f16>) {
    for (; i + 16 <= n; i += 16) {
      const __m512 x = _mm512_loadu_ps(from + i);
      const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
      const __m256i half =  // the masked form: g++ 12 warns about the plain one's undefined source
          _mm512_maskz_cvtps_ph(0xffff, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                          _mm256_mask_mov_epi16(half, nan, _mm256_set1_epi16(0x7fff)));
    }
  }
#elif defined(__F16C__) && defined(__AVX2__)
  if constexpr (std::is_same_v<T, f16>) {
    for (; i + 8 <= n; i += 8) {
      const __m256 x = _mm256_loadu_ps(from + i);
      const __m256i wide_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
      const __m128i nan =
          _mm_packs_epi32(_mm256_castsi256_si128(wide_nan), _mm256_extracti128_si256(wide_nan, 1));
      const __m128i half = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm_blendv_epi8(half, _mm_set1_epi16(0x7fff), nan));
    }
  }
#endif
#pragma GCC ivdep
  for (int k = i; k < n; ++k) to[k] = from_float<T>(from[k]);
}

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
