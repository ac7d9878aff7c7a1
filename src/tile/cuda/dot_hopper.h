// dot on wgmma: descriptors of operands in swizzled shared memory, and the products of a warpgroup,
// with A from shared memory or from registers. Both are asynchronous: fences, commits and waits are
// the program's (program_hopper.h).
#pragma once

#include "tile/cuda/ptx/wgmma.h"
#include "tile/cuda/shared.h"

namespace cria::tile {
inline namespace cuda {

// The compiler keeps an accumulator where it is while products write it.
template <class L>
CRIA_FN void pin(Tile<float, L>& t) {
#pragma unroll
  for (int i = 0; i < L::regs; ++i) ptx::pin(t.v[i]);
}

// Descriptor of a k16 slice of an operand and, in descriptor units, where slice kk begins.
// Contiguous k (plain A, transposed B): slices lie 32 bytes apart in a panel of four.
// Contiguous m or n (transposed A, plain B): a slice is 16 whole rows of 128 bytes.
template <class T, int R, int C>
CRIA_FN uint64_t along_k(View<T, R, C> v, int bytes) {
  return ptx::wgmma_descriptor(v.address + bytes, 16, 1024);
}
template <class T, int R, int C>
CRIA_FN uint64_t across_k(View<T, R, C> v, int bytes) {
  return ptx::wgmma_descriptor(v.address + bytes, v.panel_bytes, 1024);
}
template <class V>
constexpr int k_slice_along(int kk) {
  return (kk / 4 * V::panel_bytes + kk % 4 * 32) >> 4;
}
constexpr int k_slice_across(int kk) { return kk * 2048 >> 4; }

template <class B>
inline constexpr bool is_transposed = requires(B b) {
  b.view;
};
template <class T, int R, int C>
Type<T> element_type(View<T, R, C>);
template <class V>
auto element_type(Transposed<V>) -> decltype(element_type(V{}));

template <class B>
CRIA_FN uint64_t b_descriptor(B b) {
  if constexpr (is_transposed<B>)
    return along_k(b.view, 0);
  else
    return across_k(b, 0);
}
template <class B>
constexpr int b_slice(int kk) {
  if constexpr (is_transposed<B>)
    return k_slice_along<decltype(B::view)>(kk);
  else
    return k_slice_across(kk);
}

template <int Accumulate, class T, class LA, class B, class L>
CRIA_FN void multiply_registers(Tile<float, L>& acc, const Operand<T, LA>& a, B b) {
  static_assert(L::strips == 1, "dot: a register operand covers one 64-row strip per warpgroup");
  static_assert(LA::rows == L::rows && LA::cols == B::rows && B::cols == L::cols,
                "dot: operand shapes differ: acc is M x N, a is M x K, b is K x N");
  const uint64_t db = b_descriptor(b);
#pragma unroll
  for (int kk = 0; kk < LA::cols / 16; ++kk)
    ptx::wgmma_rs<!is_transposed<B>>(Type<T>{}, Shape<L::cols>{}, acc.v, a.v + kk * 4,
                                     db + b_slice<B>(kk), Accumulate || kk > 0);
}
// The strips of warpgroup `wg` of so many: every Warpgroups-th one of 64 rows.
template <int Accumulate, int Warpgroups, class A, class B, class L>
CRIA_FN void multiply_shared(Tile<float, L>& acc, A a, B b, int wg) {
  static_assert(A::rows == L::rows && A::cols == B::rows && B::cols == L::cols,
                "dot: operand shapes differ: acc is M x N, a is M x K, b is K x N");
  constexpr bool ta = is_transposed<A>;
  uint64_t da;
  if constexpr (ta)
    da = across_k(a.view, wg * a.view.panel_bytes);
  else
    da = along_k(a, wg * 64 * 128);
  const uint64_t db = b_descriptor(b);
#pragma unroll
  for (int kk = 0; kk < A::cols / 16; ++kk)
#pragma unroll
    for (int s = 0; s < L::strips; ++s) {
      int offset = 0;
      if constexpr (ta)
        offset = (s * Warpgroups * a.view.panel_bytes >> 4) + k_slice_across(kk);
      else
        offset = (s * Warpgroups * 64 * 128 >> 4) + k_slice_along<A>(kk);
      ptx::wgmma_ss<ta, !is_transposed<B>>(decltype(element_type(a)){}, Shape<L::cols>{},
                                           acc.v + s * L::groups * 4, da + offset,
                                           db + b_slice<B>(kk), Accumulate || kk > 0);
    }
}

}  // namespace cuda
}  // namespace cria::tile
