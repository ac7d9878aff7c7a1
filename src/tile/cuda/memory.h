// Global memory <-> registers: vectors of up to 16 bytes, all issued before the first is unpacked.
// A vector that a mask cuts is loaded whole, and stored element by element, in an instantiation of
// its own (tile/aligned.h): where widths are whole vectors, nothing is paid for it.
#pragma once

#include "tile/aligned.h"
#include "tile/cuda/ptx/sync.h"
#include "tile/cuda/tile.h"

namespace cria::tile {
inline namespace cuda {

template <int Bytes>
struct Raw;
template <>
struct Raw<2> {
  using type = uint16_t;
};
template <>
struct Raw<4> {
  using type = uint32_t;
};
template <>
struct Raw<8> {
  using type = uint2;
};
template <>
struct Raw<16> {
  using type = uint4;
};
template <class T, int Vec>
using RawVector = typename Raw<Vec * sizeof(T)>::type;

// What a tile of memory type T holds once loaded.
template <class T>
using Loaded = std::conditional_t<std::is_integral_v<T>, int32_t, float>;

// NOTE: `raw` comes by value: nvcc would read a reference into memory byte by byte.
template <class T, int Vec>
CRIA_FN void unpack(RawVector<T, Vec> raw, Loaded<T>* out) {
  if constexpr (sizeof(T) == 4) {
    memcpy(out, &raw, sizeof(raw));
  } else if constexpr (std::is_integral_v<T>) {
    T halves[Vec];
    memcpy(halves, &raw, sizeof(raw));
#pragma unroll
    for (int i = 0; i < Vec; ++i) out[i] = halves[i];
  } else if constexpr (Vec == 1) {
    out[0] = widen(T{raw});
  } else {
    uint32_t words[Vec / 2];
    memcpy(words, &raw, sizeof(raw));
#pragma unroll
    for (int i = 0; i < Vec / 2; ++i) unpack2<T>(words[i], out[2 * i], out[2 * i + 1]);
  }
}

template <class T, int Vec, class E>
CRIA_FN RawVector<T, Vec> pack(const E* in) {
  RawVector<T, Vec> raw;
  if constexpr (std::is_arithmetic_v<T>) {
    T whole[Vec];
#pragma unroll
    for (int i = 0; i < Vec; ++i) whole[i] = T(in[i]);
    memcpy(&raw, whole, sizeof(raw));
  } else if constexpr (Vec == 1) {
    raw = narrow<T>(float(in[0])).bits;
  } else {
    uint32_t words[Vec / 2];
#pragma unroll
    for (int i = 0; i < Vec / 2; ++i) words[i] = pack2<T>(float(in[2 * i]), float(in[2 * i + 1]));
    memcpy(&raw, words, sizeof(raw));
  }
  return raw;
}

// Elements per access: wide only where columns are contiguous and every operand allows 16-byte
// accesses.
template <class T, class L, class Off, Access A>
constexpr int access_width() {
  return Off::unit && A != Access::kElements ? min_of(L::vec, 16 / int(sizeof(T))) : 1;
}

// A word of elements of which those from n on give way to those of `other`.
template <class T>
CRIA_FN uint32_t cut_word(uint32_t word, int n, uint32_t other) {
  if (n >= 4 / int(sizeof(T))) return word;
  return n <= 0 ? other : (word & 0xffffu) | (other & 0xffff0000u);
}
// The first n elements of a vector, and zeros.
template <class T, int Vec>
CRIA_FN RawVector<T, Vec> cut_vector(RawVector<T, Vec> raw, int n) {
  constexpr int count = sizeof(raw) / 4;
  uint32_t words[count];
  memcpy(words, &raw, sizeof(raw));
#pragma unroll
  for (int i = 0; i < count; ++i) words[i] = cut_word<T>(words[i], n - i * Vec / count, 0);
  memcpy(&raw, words, sizeof(raw));
  return raw;
}
// Stores the first n elements of a vector, one by one: fewer than all.
template <class T, int Vec>
CRIA_FN void store_first(T* to, RawVector<T, Vec> raw, int n) {
  using One = RawVector<T, 1>;
  One elements[Vec];
  memcpy(elements, &raw, sizeof(raw));
#pragma unroll
  for (int i = 0; i < Vec - 1; ++i)
    if (i < n) __stwb(reinterpret_cast<One*>(to) + i, elements[i]);
}

// Fresh: bypass L1, for data that other programs of this launch have written.
template <class L, Access A, bool Fresh, class T, class Off>
CRIA_FN auto load_tile(int tid, const T* base, Off off, Mask mask,
                       Loaded<std::remove_cv_t<T>> other) {
  using M = std::remove_cv_t<T>;
  constexpr int vec = access_width<M, L, Off, A>(), count = L::regs / vec;
  constexpr bool cut = A == Access::kCutVectors && vec > 1;
  using R = RawVector<M, vec>;
  R raw[count];
  bool valid[count];
#pragma unroll
  for (int g = 0; g < count; ++g) {
    const int r = L::row(tid, g * vec), c = L::col(tid, g * vec);
    raw[g] = R{};
    valid[g] = mask(r, c, cut ? 1 : vec);
    if (valid[g]) {
      const R* from = reinterpret_cast<const R*>(base + off(r, c));
      raw[g] = Fresh ? __ldcg(from) : *from;
    }
  }
  if constexpr (cut) {
    if (other == 0 && mask.cuts(vec, L::cols)) {
#pragma unroll
      for (int g = 0; g < count; ++g)
        raw[g] = cut_vector<M, vec>(raw[g], mask.cols - L::col(tid, g * vec));
    }
  }
  Tile<Loaded<M>, L> out;
#pragma unroll
  for (int g = 0; g < count; ++g) {
    unpack<M, vec>(raw[g], out.v + g * vec);
    if (other != 0) {
#pragma unroll
      for (int i = 0; i < vec; ++i) {
        const bool inside = valid[g] && (!cut || L::col(tid, g * vec + i) < mask.cols);
        out.v[g * vec + i] = inside ? out.v[g * vec + i] : other;
      }
    }
  }
  return out;
}

// 16-bit elements that stay packed.
template <class L, Access A, class T, class Off>
CRIA_FN auto load_packed_tile(int tid, const T* base, Off off, Mask mask, float other) {
  constexpr int vec = access_width<T, L, Off, A>();
  constexpr bool cut = A == Access::kCutVectors && vec > 1;
  const uint32_t others = pack2<T>(other, other);
  Packed<T, L> out;
#pragma unroll
  for (int i = 0; i < L::regs / 2; ++i) out.v[i] = others;
#pragma unroll
  for (int g = 0; g < L::regs; g += vec) {
    const int r = L::row(tid, g), c = L::col(tid, g);
    if (!mask(r, c, cut ? 1 : vec)) continue;
    if constexpr (vec > 1) {
      const auto raw = *reinterpret_cast<const RawVector<T, vec>*>(base + off(r, c));
      memcpy(out.v + g / 2, &raw, sizeof(raw));
    } else {
      const uint32_t bits = base[off(r, c)].bits;
      out.v[g / 2] = g % 2 == 0 ? (out.v[g / 2] & 0xffff0000u) | bits
                                : (out.v[g / 2] & 0x0000ffffu) | bits << 16;
    }
  }
  if constexpr (cut) {
    if (mask.cuts(vec, L::cols)) {
#pragma unroll
      for (int g = 0; g < L::regs; g += 2)
        out.v[g / 2] = cut_word<T>(out.v[g / 2], mask.cols - L::col(tid, g), others);
    }
  }
  return out;
}

// raw(g) is the vector whose first element is register g.
template <Access A, class L, class T, class Off, class Raw>
CRIA_FN void store_vectors(int tid, T* base, Off off, Mask mask, Raw raw) {
  constexpr int vec = access_width<T, L, Off, A>();
#pragma unroll
  for (int g = 0; g < L::regs; g += vec) {
    const int r = L::row(tid, g), c = L::col(tid, g);
    // NOTE: a plain assignment of a 16-byte vector may become four 4-byte stores (nvcc 13.0).
    if (mask(r, c, vec))
      __stwb(reinterpret_cast<RawVector<T, vec>*>(base + off(r, c)), raw(g));
    else if constexpr (A == Access::kCutVectors && vec > 1)
      if (mask(r, c)) store_first<T, vec>(base + off(r, c), raw(g), mask.cols - c);
  }
}

template <Access A, class T, class Off, class E, class L>
CRIA_FN void store_tile_at(int tid, T* base, Off off, const Tile<E, L>& t, Mask mask) {
  constexpr int vec = access_width<T, L, Off, A>();
  store_vectors<A, L>(tid, base, off, mask, [&](int g) { return pack<T, vec>(t.v + g); });
}

// f(low, high, x, y) changes the elements of two columns N apart; x and y are what they meet in the
// tables, the same in every 2 N columns. A few columns of all rows at a time: their loads overlap,
// and cost few registers.
template <Access A, int N, class L, class F>
CRIA_FN void update_pairs_at(int tid, Tile<float, L>& t, F f, const PairTables& tables, Mask mask) {
  constexpr int rows = L::Row::regs, distance = pair_distance<L, N>(), chunk = min_of(distance, 8);
  constexpr int width = A == Access::kElements ? 1 : L::vec;
  using R = RawVector<float, width>;
  if (mask.cols <= 0) return;
#pragma unroll
  for (int first = 0; first < distance; first += chunk) {
    float xs[rows][chunk], ys[rows][chunk];
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      const int r = min_of(L::Row::row(tid, row), mask.rows - 1);
      const float *x = tables.x.row(tables.row(r)), *y = tables.y.row(tables.row(r));
#pragma unroll
      for (int i = 0; i < chunk; i += width) {
        const int c = L::Col::col(tid, first + i);
        unpack<float, width>(*reinterpret_cast<const R*>(x + c), xs[row] + i);
        unpack<float, width>(*reinterpret_cast<const R*>(y + c), ys[row] + i);
      }
    }
#pragma unroll
    for (int pairs = 0; pairs < L::cols; pairs += 2 * N) {
      if (pairs >= mask.cols) continue;
#pragma unroll
      for (int row = 0; row < rows; ++row)
#pragma unroll
        for (int i = 0; i < chunk; ++i) {
          const int column = pairs / 4 + first + i;
          f(t.v[L::reg(row, column)], t.v[L::reg(row, column + distance)], xs[row][i], ys[row][i]);
        }
    }
    ptx::compiler_fence();
  }
}

// f of a tile's elements, one vector at a time.
template <Access A, class T, class Off, class F, class X>
CRIA_FN void store_mapped_at(int tid, T* base, Off off, F f, const X& x, Mask mask) {
  using L = typename X::Layout;
  constexpr int vec = access_width<T, L, Off, A>();
  store_vectors<A, L>(tid, base, off, mask, [&](int g) {
    float values[vec];
#pragma unroll
    for (int i = 0; i < vec; ++i) values[i] = f(element<L>(x, g + i));
    return pack<T, vec>(values);
  });
}

}  // namespace cuda
}  // namespace cria::tile
