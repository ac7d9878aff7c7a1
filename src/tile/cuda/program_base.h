// What every GPU program can do: identify itself, move tiles between global memory and registers,
// reduce, transpose, place tiles by position, and walk tiles persistently with grid-wide barriers.
#pragma once

#include <cooperative_groups/details/driver_abi.h>

#include <cstdio>

#include "base/tensor.h"
#include "tile/cuda/memory.h"
#include "tile/cuda/reduce.h"
#include "tile/cuda/shared.h"
#include "tile/kernel.h"
#include "tile/offsets.h"

namespace cria::tile {
inline namespace cuda {

template <class K>
constexpr int vector_wish() {
  if constexpr (requires { K::vec; })
    return K::vec;
  else
    return 16 / int(sizeof(typename K::Element));
}

// Position in the grid; shared by the programs that compute and those that only fetch.
struct ProgramId {
  CRIA_FN int program_id(int axis) const {
    return axis == 0 ? blockIdx.x : axis == 1 ? blockIdx.y : blockIdx.z;
  }
  CRIA_FN int num_programs(int axis) const {
    return axis == 0 ? gridDim.x : axis == 1 ? gridDim.y : gridDim.z;
  }
  // NOTE: read at once, or the compiler leaves the divisions to the store that ends a tile, where
  // nothing hides them.
  CRIA_FN TileIndex banded(int t, int rows, int cols, int band) const {
    const TileIndex at = tile::banded(t, rows, cols, band);
    ptx::touch(at.row), ptx::touch(at.col);
    return at;
  }
};

template <class K, Access A>
struct ProgramBase : ProgramId {
  static constexpr int threads = K::traits.threads, warps = threads / 32, groups = K::traits.groups;
  Group group;

  template <int M, int N>
  using DefaultLayout = Blocked<M, N, widest_vector<M, N, threads>(vector_wish<K>()), threads>;

  CRIA_FN ProgramBase(int tid, int barrier) : group{tid, barrier} {}
  CRIA_FN int tid() const { return group.tid; }
  CRIA_FN void sync() { ptx::bar_sync(group.barrier, threads); }

  template <int N>
  CRIA_FN Range<N> arange(Shape<N>) const {
    return {0};
  }

  // ---- global memory
  template <class T, class Off>
    requires requires { Off::unit; }
  CRIA_FN auto load(const T* base, Off off, Mask mask = {}, Loaded<T> other = 0) {
    return load(DefaultLayout<Off::rows, Off::cols>{}, base, off, mask, other);
  }
  template <class L, class T, class Off>
    requires requires { L::regs; }
  CRIA_FN auto load(L, const T* base, Off off, Mask mask = {}, Loaded<T> other = 0) {
    static_assert(L::rows == Off::rows && L::cols == Off::cols,
                  "load: layout and offsets differ in shape");
    return load_tile<L, A, false>(tid(), base, off, mask, other);
  }
  template <class T, class Off>
  CRIA_FN auto load_fresh(const T* base, Off off, Mask mask = {}, Loaded<T> other = 0) {
    return load_tile<DefaultLayout<Off::rows, Off::cols>, A, true>(tid(), base, off, mask, other);
  }
  // 16-bit elements stay packed in pairs until they are used: half the registers, and a conversion
  // at each use.
  template <class T, class Off>
  CRIA_FN auto load_packed(const T* base, Off off, Mask mask = {}, float other = 0) {
    using L = DefaultLayout<Off::rows, Off::cols>;
    if constexpr (sizeof(T) == 2 && L::vec % 2 == 0)
      return load_packed_tile<L, A>(tid(), base, off, mask, other);
    else
      return load(base, off, mask, other);
  }
  // Floats in two halves (base/dtype.h), each an array of its own.
  template <class Off>
  CRIA_FN auto load_split(const bf16* high, const int16_t* low, Off off, Mask mask = {}) {
    return map([](float h, int32_t l) { return join_halves(h, l); }, load(high, off, mask),
               load(low, off, mask));
  }
  template <class T, int M, int N>
  CRIA_FN auto load(Tensor<T> t, Shape<M, N>, int r0, int c0, int batch = 0) {
    return load(DefaultLayout<M, N>{}, t, r0, c0, batch);
  }
  template <class L, class T>
    requires requires { L::regs; }
  CRIA_FN auto load(L l, Tensor<T> t, int r0, int c0, int batch = 0) {
    return load(l, static_cast<const T*>(t.at(batch, 0, 0)),
                block_at<L::rows, L::cols>(r0, c0, t.ld), Mask{t.rows - r0, t.cols - c0});
  }
  // t += the block of x at (r0, c0), zero outside x: a few columns at a time, to cost few
  // registers.
  template <class L, class T>
  CRIA_FN void add_block(Tile<float, L>& t, Tensor<T> x, int r0, int c0, int batch = 0) {
    using M = std::remove_cv_t<T>;
    using Off = Offsets<L::rows, L::cols, true>;
    constexpr int vec = access_width<M, L, Off, A>(), chunk = 4;
    const T* base = x.at(batch, r0, c0);
    const Mask mask{x.rows - r0, x.cols - c0};
    const auto add = [&](auto cut) {
#pragma unroll
      for (int g = 0; g < L::regs / vec; g += chunk) {
        RawVector<M, vec> raw[chunk];
#pragma unroll
        for (int i = 0; i < chunk && g + i < L::regs / vec; ++i) {
          const int r = L::row(tid(), (g + i) * vec), c = L::col(tid(), (g + i) * vec);
          raw[i] = {};
          if (mask(r, c, cut ? 1 : vec))
            raw[i] = *reinterpret_cast<const RawVector<M, vec>*>(base + r * x.ld + c);
          if constexpr (cut) raw[i] = cut_vector<M, vec>(raw[i], mask.cols - c);
        }
#pragma unroll
        for (int i = 0; i < chunk && g + i < L::regs / vec; ++i) {
          float values[vec];
          unpack<M, vec>(raw[i], values);
#pragma unroll
          for (int e = 0; e < vec; ++e) t.v[(g + i) * vec + e] += values[e];
        }
        ptx::compiler_fence();
      }
    };
    if constexpr (A == Access::kCutVectors && vec > 1)
      if (mask.cuts(vec, L::cols)) return add(std::true_type{});
    add(std::false_type{});
  }
  // f(low, high, x, y) for the elements of columns N apart, in place, with the tables' elements
  // they meet; in whole 2 N columns, those that begin inside the mask.
  template <int N, class L, class F>
  CRIA_FN void update_pairs(Pairs<N>, Tile<float, L>& t, F f, const PairTables& tables,
                            Mask mask = {}) {
    update_pairs_at<A, N>(tid(), t, f, tables, mask);
  }
  template <class T>
  CRIA_FN auto load(const T* at) {
    return widen(*at);
  }
  template <class T, class Off, class E, class L>
    requires requires { Off::unit; }
  CRIA_FN void store(T* base, Off off, const Tile<E, L>& t, Mask mask = {}) {
    static_assert(
        !std::is_const_v<T>,
        "store: this operand is only read: declare it Tensor<T>, without const, to write it");
    static_assert(L::rows == Off::rows && L::cols == Off::cols,
                  "store: tile and offsets differ in shape");
    store_tile_at<A>(tid(), base, off, t, mask);
  }
  template <class T, class E, class L>
  CRIA_FN void store(Tensor<T> t, const Tile<E, L>& tile, int r0, int c0, int batch = 0) {
    store(t.at(batch, 0, 0), block_at<L::rows, L::cols>(r0, c0, t.ld), tile,
          Mask{t.rows - r0, t.cols - c0});
  }
  template <class Off, class L>
  CRIA_FN void store_split(bf16* high, int16_t* low, Off off, const Tile<float, L>& t,
                           Mask mask = {}) {
    store(high, off, map([](float x) { return to_float(high_half(x)); }, t), mask);
    store(low, off, map([](float x) { return int32_t{low_half(x)}; }, t), mask);
  }
  // f(x), for tiles so wide that registers hold x but not f(x) beside it.
  template <class T, class Off, class F, class X>
  CRIA_FN void store_mapped(T* base, Off off, F f, const X& x, Mask mask = {}) {
    store_mapped_at<A>(tid(), base, off, f, x, mask);
  }
  template <class T>
  CRIA_FN void store(T* at, float x) {
    static_assert(
        !std::is_const_v<T>,
        "store: this operand is only read: declare it Tensor<T>, without const, to write it");
    if (tid() == 0) *at = narrow<T>(x);
  }
  template <class T, class L>
  CRIA_FN auto gather(const T* base, const Tile<int32_t, L>& index, Mask mask = {},
                      float other = 0) {
    Tile<float, L> out;
#pragma unroll
    for (int i = 0; i < L::regs; ++i)
      out.v[i] = mask(L::row(tid(), i), L::col(tid(), i)) ? widen(base[index.v[i]]) : other;
    return out;
  }
  template <class T, class L>
  CRIA_FN void scatter(T* base, const Tile<int32_t, L>& index, const Tile<float, L>& t,
                       Mask mask = {}) {
#pragma unroll
    for (int i = 0; i < L::regs; ++i)
      if (mask(L::row(tid(), i), L::col(tid(), i))) base[index.v[i]] = narrow<T>(t.v[i]);
  }

  // ---- new tiles
  template <int... N>
  CRIA_FN auto zeros(Shape<N...> s) {
    return full(s, 0.f);
  }
  template <int M, int N>
  CRIA_FN auto full(Shape<M, N>, float x) {
    return filled<DefaultLayout<M, N>>(x);
  }
  template <int N>
  CRIA_FN auto full(Shape<N>, float x) {
    return filled<DefaultLayout<1, N>>(x);
  }
  template <int M, int N>
  CRIA_FN auto accumulator(Shape<M, N>) {
    return filled<Mma<M, N, warps>>(0.f);
  }
  template <class L>
  CRIA_FN auto full_rows(const Tile<float, L>&, float x) {
    return filled<typename L::Row>(x);
  }
  template <class L>
  CRIA_FN auto full_cols(const Tile<float, L>&, float x) {
    return filled<typename L::Col>(x);
  }
  // N columns of a rounded accumulator, from c0.
  template <class T, int M, int All, int Warps, int N>
  CRIA_FN auto columns(const Operand<T, Mma<M, All, Warps>>& x, Shape<N>, int c0) const {
    using From = Mma<M, All, Warps>;
    using To = Mma<M, N, Warps>;
    constexpr int words = sizeof(T) == 2 ? 2 : 4;  // of a group of 8 columns
    Operand<T, To> out;
#pragma unroll
    for (int s = 0; s < To::strips; ++s)
#pragma unroll
      for (int i = 0; i < To::groups * words; ++i)
        out.v[s * To::groups * words + i] = x.v[(s * From::groups + c0 / 8) * words + i];
    return out;
  }
  template <class E, class L>
  CRIA_FN const Tile<E, L>& keep(const Tile<E, L>& t) {
    return t;
  }

  // An accumulator set aside in shared memory. Threads keep to their own part: no sync is needed.
  template <class L, int R, int C>
  CRIA_FN void save(Saved<R, C> to, const Tile<float, L>& t) const {
    static_assert(L::rows == R && L::cols == C, "save: tile and place differ in shape");
#pragma unroll
    for (int i = 0; i < L::regs; i += 4)
      ptx::store_shared_128(to.address + (i * threads + tid() * 4) * 4, t.v + i);
  }
  template <class L, int R, int C>
  CRIA_FN void restore(Tile<float, L>& t, Saved<R, C> from) const {
    static_assert(L::rows == R && L::cols == C, "restore: tile and place differ in shape");
#pragma unroll
    for (int i = 0; i < L::regs; i += 4)
      ptx::load_shared_128(t.v + i, from.address + (i * threads + tid() * 4) * 4);
  }

  // ---- reductions
  template <class L>
  CRIA_FN float sum(const Tile<float, L>& t) {
    static_assert(
        requires { typename L::Row; },
        "sum: reduce the tile itself: a GPU holds a row or column of it several times");
    return reduce_all<groups>(group, t, Add{});
  }
  template <class L>
  CRIA_FN float max(const Tile<float, L>& t) {
    return reduce_all<groups>(group, t, Max{});
  }
  template <class T, class L>
  CRIA_FN float max(const Packed<T, L>& t) {
    return max(map([](float x) { return x; }, t));
  }
  template <class L>
  CRIA_FN auto sum(const Tile<float, L>& t, Axis<1>) {
    return reduce_rows<groups>(group, t, Add{});
  }
  template <class L>
  CRIA_FN auto max(const Tile<float, L>& t, Axis<1>) {
    return reduce_rows<groups>(group, t, Max{});
  }
  template <class L>
  CRIA_FN auto sum(const Tile<float, L>& t, Axis<0>) {
    return reduce_cols<groups>(group, t, Add{});
  }
  template <class L>
  CRIA_FN auto max(const Tile<float, L>& t, Axis<0>) {
    return reduce_cols<groups>(group, t, Max{});
  }
  // A row sum left unfinished across threads, for loops that need only the total at the end.
  template <class L>
  CRIA_FN auto partial_sum(const Tile<float, L>& t, Axis<1>) {
    return reduce_rows<groups>(group, t, Add{}, false);
  }
  template <class R>
  CRIA_FN void combine(Tile<float, R>& rows) {
    combine_rows<groups>(group, rows, Add{});
  }

  // ---- by position
  template <class Where, class E, class L>
  CRIA_FN Tile<E, L> where(Where inside, Tile<E, L> t, E other) {
#pragma unroll
    for (int i = 0; i < L::regs; ++i)
      if (!inside(L::row(tid(), i), L::col(tid(), i))) t.v[i] = other;
    return t;
  }
  template <class E, class L, int P>
  CRIA_FN auto trans(const Tile<E, L>& t, Pad<P>) {
    using Out = DefaultLayout<L::cols, L::rows>;
    constexpr int stride = L::rows + P, width = staged_width<Out>(stride);
    __shared__ alignas(16) E staged[L::cols * stride];
    Tile<E, Out> out;
    sync();
#pragma unroll
    for (int i = 0; i < L::regs; ++i) staged[L::col(tid(), i) * stride + L::row(tid(), i)] = t.v[i];
    sync();
#pragma unroll
    for (int i = 0; i < Out::regs; i += width) {
      using Vector = RawVector<float, width>;
      const E* from = staged + Out::row(tid(), i) * stride + Out::col(tid(), i);
      const Vector whole = *reinterpret_cast<const Vector*>(from);
      memcpy(out.v + i, &whole, sizeof(whole));
    }
    return out;
  }
  template <class E, class L>
  CRIA_FN auto trans(const Tile<E, L>& t) {
    return trans(t, pad<1>);
  }
  // For debugging: one line per element, in row-major order, the first 64 elements. Of the threads
  // that hold an element of a row or column, one prints.
  template <class E, class L>
  CRIA_FN void print(const char* name, const Tile<E, L>& t) {
    __shared__ int nexts[groups];
    int& next = nexts[groups == 1 ? 0 : threadIdx.x / threads];
    if (tid() == 0) next = 0;
    sync();
    for (int e = 0; e < L::rows * L::cols && e < 64; ++e) {
      for (int i = 0; i < L::regs; ++i)
        if (L::row(tid(), i) * L::cols + L::col(tid(), i) == e && atomicCAS(&next, e, e + 1) == e)
          printf("program (%d,%d,%d) %s[%d,%d] = %g\n", blockIdx.x, blockIdx.y, blockIdx.z, name,
                 e / L::cols, e % L::cols, double(t.v[i]));
      sync();
    }
  }

  // ---- persistence
  template <class F>
  CRIA_FN void for_tiles(int n, F f) {
#pragma unroll 1
    for (int t = blockIdx.x; t < n; t += gridDim.x) f(t);
  }
  // Every program arrives before any goes on. The counter's top bit flips once per barrier, so it
  // needs no reset. It is the driver's, which has one for each cooperative launch.
  // NOTE: used as by cooperative_groups (details/sync.h), whose wait has no bound; here a lost
  // program is reported, not waited for.
  CRIA_FN void grid_sync() {
    static_assert(K::traits.cooperative, "grid_sync: the kernel's traits must say .cooperative");
    sync();
    if (tid() == 0) {
      const unsigned programs = gridDim.x * gridDim.y * gridDim.z;
      unsigned* word = &cooperative_groups::details::get_grid_workspace()->barrier;
      const bool first = blockIdx.x + blockIdx.y + blockIdx.z == 0;
      __threadfence();
      const unsigned before = atomicAdd(word, first ? 0x80000000u - (programs - 1) : 1u);
      const long long start = clock64();
      while (((before ^ ptx::load_acquire(word)) & 0x80000000u) == 0) {
        if (clock64() - start > kSpinLimit) {
          printf("cria: program (%d,%d,%d) waited in vain for %u programs at a grid barrier\n",
                 blockIdx.x, blockIdx.y, blockIdx.z, programs);
          __trap();
        }
      }
    }
    sync();
  }

  // ---- programs that wait for others of the same launch, which must come before them in the grid
  // `place` is zero before the launch and after it. signal: what this program has stored is there.
  CRIA_FN void signal(int32_t* place) {
    sync();
    if (tid() == 0) ptx::add_release(reinterpret_cast<unsigned*>(place), 1);
  }
  // Until `signals` programs have signalled; `programs` do this, each once. Every warp waits by
  // itself, and the last to see all signals clears them. Low half: signals; high half: warps that
  // have seen them.
  CRIA_FN void await(int32_t* place, int signals, int programs) {
    if (tid() % 32 == 0) {
      unsigned* word = reinterpret_cast<unsigned*>(place);
      const long long start = clock64();
      while ((ptx::load_acquire(word) & 0xffffu) != unsigned(signals))
        if (clock64() - start > kSpinLimit)
          __trap();  // NOTE: a call, to print, would serialise wgmma
      if (atomicAdd(word, 0x10000u) >> 16 == unsigned(programs * warps - 1)) *word = 0;
    }
    __syncwarp();
  }

 private:
  static constexpr long long kSpinLimit = 20'000'000'000;  // about 10 s
  template <class L>
  static CRIA_FN Tile<float, L> filled(float x) {
    Tile<float, L> t;
#pragma unroll
    for (int i = 0; i < L::regs; ++i) t.v[i] = x;
    return t;
  }
};

}  // namespace cuda
}  // namespace cria::tile
