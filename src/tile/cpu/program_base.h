// The part of a program that deals with tiles in global memory and in registers; program_host.h
// adds shared memory. Every operation that touches memory knows the kernel's line it was called
// from.
#pragma once

#include <atomic>

#include "base/tensor.h"
#include "tile/cpu/print.h"
#include "tile/cpu/probe.h"
#include "tile/cpu/reduce.h"
#include "tile/cpu/run.h"
#include "tile/cpu/store.h"
#include "tile/kernel.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

template <class X>
concept AffineOffsets = requires {
  X::unit;
};
template <class X>
concept TileLayout = requires {
  X::regs;
};

template <class K, class Probe>
class ProgramBase {
 public:
  static constexpr int threads = K::traits.threads, warps = threads / 32;
  static_assert(threads % 32 == 0, "traits.threads must be a multiple of 32");

  static constexpr int vector_wish() {
    if constexpr (requires { K::vec; })
      return K::vec;
    else
      return 16 / static_cast<int>(sizeof(typename K::Element));
  }
  template <int M, int N>
  using DefaultLayout = Blocked<M, N, widest_vector<M, N, threads>(vector_wish()), threads>;

  CRIA_FN ProgramBase(const LaunchState& launch, int64_t index, Probe probe)
      : probe_(probe), launch_(launch) {
    const Grid& g = launch.programs;
    id_[0] = static_cast<int>(index % g.x);
    id_[1] = static_cast<int>(index / g.x % g.y);
    id_[2] = static_cast<int>(index / g.x / g.y);
  }

  CRIA_FN int program_id(int axis) const { return id_[axis]; }
  CRIA_FN TileIndex banded(int t, int rows, int cols, int band) const {
    return tile::banded(t, rows, cols, band);
  }
  CRIA_FN int num_programs(int axis) const {
    const Grid& g = launch_.programs;
    return axis == 0 ? static_cast<int>(g.x) : axis == 1 ? g.y : g.z;
  }
  template <int N>
  CRIA_FN Range<N> arange(Shape<N>) const {
    return {0};
  }

  // ---- global memory
  template <class T, AffineOffsets Off>
  CRIA_FN auto load(const T* base, Off off, Mask mask = {}, Loaded<T> other = 0,
                    Source at = Source::current()) {
    return load(DefaultLayout<Off::rows, Off::cols>{}, base, off, mask, other, at);
  }
  template <TileLayout L, class T, AffineOffsets Off>
  CRIA_FN auto load(L layout, const T* base, Off off, Mask mask = {}, Loaded<T> other = 0,
                    Source at = Source::current()) {
    probe_.load(layout, base, off, mask, at);
    return probe_.watch(load_node<L>(base, off, mask, other), at);
  }
  template <class T, int M, int N>
  CRIA_FN auto load(Tensor<T> t, Shape<M, N>, int r0, int c0, int batch = 0,
                    Source at = Source::current()) {
    return load(DefaultLayout<M, N>{}, t, r0, c0, batch, at);
  }
  template <TileLayout L, class T>
  CRIA_FN auto load(L layout, Tensor<T> t, int r0, int c0, int batch = 0,
                    Source at = Source::current()) {
    const T* base = t.matrix(batch);
    return load(layout, base, block_at<L::rows, L::cols>(r0, c0, t.ld), inside(t, r0, c0), 0, at);
  }
  // Data that another program wrote earlier in this launch.
  template <class T, AffineOffsets Off>
  CRIA_FN auto load_fresh(const T* base, Off off, Mask mask = {}, Loaded<T> other = 0,
                          Source at = Source::current()) {
    return load(base, off, mask, other, at);
  }
  template <TileLayout L, class T, AffineOffsets Off>
  CRIA_FN auto load_fresh(L layout, const T* base, Off off, Mask mask = {}, Loaded<T> other = 0,
                          Source at = Source::current()) {
    return load(layout, base, off, mask, other, at);
  }
  // A GPU keeps such a tile in half the registers.
  template <class T, AffineOffsets Off>
  CRIA_FN auto load_packed(const T* base, Off off, Mask mask = {}, Loaded<T> other = 0,
                           Source at = Source::current()) {
    return load(base, off, mask, other, at);
  }
  // Floats in two halves (base/dtype.h), each an array of its own.
  template <AffineOffsets Off>
  CRIA_FN auto load_split(const bf16* high, const int16_t* low, Off off, Mask mask = {},
                          Source at = Source::current()) {
    return map([](float h, int32_t l) { return join_halves(h, l); }, load(high, off, mask, 0, at),
               load(low, off, mask, 0, at));
  }
  // t += a block of a tensor, zero outside it.
  template <class L, class T>
  CRIA_FN void add_block(Tile<float, L>& t, Tensor<T> x, int r0, int c0, int batch = 0,
                         Source at = Source::current()) {
    t += load(L{}, x, r0, c0, batch, at);
  }
  // f(low, high, x, y) for the elements of columns N apart, in place, with the tables' elements
  // they meet; in whole 2 N columns, those that begin inside the mask.
  template <int N, class L, class F>
  CRIA_FN void update_pairs(Pairs<N> apart, Tile<float, L>& t, F f, const PairTables& tables,
                            Mask mask = {}, Source at = Source::current()) {
    static_assert(pair_distance<L, N>() > 0);
    probe_.load_pairs(L{}, apart, tables, mask, at);
    for (int r = 0; r < clip(mask.rows, L::rows); ++r) {
      const float *x = tables.x.row(tables.row(r)), *y = tables.y.row(tables.row(r));
      for (int c = 0; c < clip(mask.cols, L::cols); c += 2 * N) {
        float *low = t.v + r * L::cols + c, *high = low + N;
#pragma GCC ivdep
        for (int i = 0; i < N; ++i) f(low[i], high[i], x[i], y[i]);
      }
    }
  }
  template <class T>
  CRIA_FN Loaded<T> load(const T* from, Source at = Source::current()) {
    probe_.load_scalar(from, at);
    return widen(*from);
  }

  template <class T, AffineOffsets Off, Expression X>
  CRIA_FN void store(T* base, Off off, const X& x, Mask mask = {}, Source at = Source::current()) {
    using L = typename X::Layout;
    static_assert(
        !std::is_const_v<T>,
        "store: this operand is only read: declare it Tensor<T>, without const, to write it");
    probe_.store(L{}, base, off, mask, at);
    store_node(base, off, x, mask, streams<T>(L::rows * L::cols));
  }
  template <class T, Expression X>
  CRIA_FN void store(Tensor<T> t, const X& x, int r0, int c0, int batch = 0,
                     Source at = Source::current()) {
    using L = typename X::Layout;
    store(t.matrix(batch), block_at<L::rows, L::cols>(r0, c0, t.ld), x, inside(t, r0, c0), at);
  }
  template <AffineOffsets Off, Expression X>
  CRIA_FN void store_split(bf16* high, int16_t* low, Off off, const X& x, Mask mask = {},
                           Source at = Source::current()) {
    using L = typename X::Layout;
    probe_.store(L{}, high, off, mask, at);
    probe_.store(L{}, low, off, mask, at);
    store_split_node(high, low, off, x, mask);
  }
  // f(x), which a GPU computes one vector at a time.
  template <class T, AffineOffsets Off, class F, Expression X>
  CRIA_FN void store_mapped(T* base, Off off, F f, const X& x, Mask mask = {},
                            Source at = Source::current()) {
    store(base, off, map(f, x), mask, at);
  }
  template <class T>
  CRIA_FN void store(T* to, float x, Source at = Source::current()) {
    static_assert(
        !std::is_const_v<T>,
        "store: this operand is only read: declare it Tensor<T>, without const, to write it");
    probe_.store_scalar(to, at);
    *to = narrow<T>(x);
  }

  template <class T, Expression I>
  CRIA_FN auto gather(const T* base, const I& index, Mask mask = {}, Loaded<T> other = 0,
                      Source at = Source::current()) {
    using L = typename I::Layout;
    static_assert(std::is_same_v<typename I::Element, int32_t>,
                  "gather: the index tile holds int32_t");
    probe_.gather(base, index, mask, at);
    return probe_.watch(
        Gather<T, I>{base, index, clip(mask.rows, L::rows), clip(mask.cols, L::cols), other}, at);
  }
  template <class T, Expression I, Expression X>
  CRIA_FN void scatter(T* base, const I& index, const X& x, Mask mask = {},
                       Source at = Source::current()) {
    using L = typename I::Layout;
    static_assert(std::is_same_v<L, typename X::Layout>,
                  "scatter: index and values differ in layout");
    probe_.scatter(base, index, mask, at);
    const int rows = clip(mask.rows, L::rows), cols = clip(mask.cols, L::cols);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < cols; ++c)
        base[index.template at<Region::kEdge>(r, c)] =
            narrow<T>(x.template at<Region::kEdge>(r, c));
  }

  // ---- new tiles
  template <int... N>
  CRIA_FN auto zeros(Shape<N...> s) const {
    return full(s, 0.f);
  }
  template <int M, int N>
  CRIA_FN auto full(Shape<M, N>, float x) const {
    return filled<DefaultLayout<M, N>>(x);
  }
  template <int N>
  CRIA_FN auto full(Shape<N>, float x) const {
    return filled<DefaultLayout<1, N>>(x);
  }
  template <int M, int N>
  CRIA_FN auto accumulator(Shape<M, N>) const {
    return filled<Mma<M, N, warps>>(0.f);
  }
  template <Expression X>
  CRIA_FN auto full_rows(const X&, float x) const {
    return filled<typename X::Layout::Row>(x);
  }
  template <Expression X>
  CRIA_FN auto full_cols(const X&, float x) const {
    return filled<typename X::Layout::Col>(x);
  }
  template <Expression X>
  CRIA_FN Tile<typename X::Element, typename X::Layout> keep(const X& x) const {
    return x;
  }

  // ---- reductions
  template <Expression X>
  CRIA_FN float sum(const X& x, Source at = Source::current()) {
    static_assert(Sliced<typename X::Layout>,
                  "sum: reduce the tile itself: a GPU holds a row or column of it several times");
    probe_.reduce(typename X::Layout{}, at);
    return reduce_all(x, Add{});
  }
  template <Expression X>
  CRIA_FN float max(const X& x, Source at = Source::current()) {
    probe_.reduce(typename X::Layout{}, at);
    return reduce_all(x, Max{});
  }
  template <Expression X>
  CRIA_FN auto sum(const X& x, Axis<1> along, Source at = Source::current()) {
    probe_.reduce(typename X::Layout{}, along, at);
    return reduce_rows(x, Add{});
  }
  template <Expression X>
  CRIA_FN auto max(const X& x, Axis<1> along, Source at = Source::current()) {
    probe_.reduce(typename X::Layout{}, along, at);
    return reduce_rows(x, Max{});
  }
  template <Expression X>
  CRIA_FN auto sum(const X& x, Axis<0> down, Source at = Source::current()) {
    probe_.reduce(typename X::Layout{}, down, at);
    return reduce_cols(x, Add{});
  }
  template <Expression X>
  CRIA_FN auto max(const X& x, Axis<0> down, Source at = Source::current()) {
    probe_.reduce(typename X::Layout{}, down, at);
    return reduce_cols(x, Max{});
  }
  // A row sum that a GPU leaves unfinished across threads until combine().
  template <Expression X>
  CRIA_FN auto partial_sum(const X& x, Axis<1>) {
    return reduce_rows(x, Add{});
  }
  template <class R>
  CRIA_FN void combine(Tile<float, R>&, Source at = Source::current()) {
    probe_.combine(R{}, at);
  }

  // ---- by position
  template <class Where, Expression X>
  CRIA_FN auto where(Where kept, const X& x, typename X::Element other) const {
    if constexpr (is_eager<X>)
      return X(Select<Where, Reference<X>>{kept, {x}, other});
    else
      return Select<Where, X>{kept, x, other};
  }
  template <Expression X, int P>
  CRIA_FN auto trans(const X& x, Pad<P> padding, Source at = Source::current()) {
    using L = typename X::Layout;
    using Out = DefaultLayout<L::cols, L::rows>;
    probe_.transpose(L{}, Out{}, padding, at);
    Tile<typename X::Element, Out> out;
    transpose_tile(keep(x), out);
    return out;
  }
  template <Expression X>
  CRIA_FN auto trans(const X& x, Source at = Source::current()) {
    return trans(x, pad<1>, at);
  }
  // ---- persistence
  template <class F>
  CRIA_FN void for_tiles(int n, F f) {
    for (int t = id_[0]; t < n; t += num_programs(0)) f(t);
  }
  CRIA_FN void grid_sync() const {
    stream_fence();
    if (launch_.barrier) launch_.barrier(launch_.context);
  }

  // ---- programs that wait for others of the same launch, which must come before them in the grid
  // `place` is zero before the launch and after it. signal: what this program has stored is there.
  CRIA_FN void signal(int32_t* place) const {
    if (!launch_.pause) return;
    stream_fence();
    std::atomic_ref<int32_t>(*place).fetch_add(1, std::memory_order_release);
  }
  // Until `signals` programs have signalled; `programs` do this, each once, and the last to see all
  // signals clears them. Low half: signals; high half: programs that have seen them.
  CRIA_FN void await(int32_t* place, int signals, int programs) const {
    if (!launch_.pause) return;  // programs run in order: all those before are done
    std::atomic_ref<int32_t> word(*place);
    while ((word.load(std::memory_order_acquire) & 0xffff) != signals)
      launch_.pause(launch_.context);
    if (word.fetch_add(0x10000) >> 16 == programs - 1) word.store(0);
  }

  template <Expression X>
  void print(const char* name, const X& x) const {
    using L = typename X::Layout;
    Tile<float, L> values = map([](auto e) { return static_cast<float>(e); }, x);
    print_tile(name, id_, values.v, L::rows, L::cols);
  }

 protected:
  template <class T>
  static CRIA_FN Mask inside(const Tensor<T>& t, int r0, int c0) {
    return {t.rows - r0, t.cols - c0};
  }
  CRIA_FN const LaunchState& launch() const { return launch_; }
  CRIA_FN int64_t index() const {
    const Grid& g = launch_.programs;
    return id_[0] + g.x * (id_[1] + int64_t{g.y} * id_[2]);
  }
  [[no_unique_address]] Probe probe_;

 private:
  template <class X>
  struct Reference {  // an eager tile inside an expression that does not outlive it
    using Element = typename X::Element;
    using Layout = typename X::Layout;
    const X& x;
    template <Region R>
    CRIA_FN Element at(int r, int c) const {
      return x.template at<R>(r, c);
    }
    CRIA_FN Extent extent() const { return {}; }
  };

  template <class L>
  static CRIA_FN Tile<float, L> filled(float x) {
    Tile<float, L> t;
    for (float& e : t.v) e = x;
    return t;
  }
  // A launch that writes more than the last cache level holds gains by not keeping it there, unless
  // it spends its time on converting to 16 bits.
  template <class T>
  CRIA_FN bool streams(int64_t tile_elements) const {
    constexpr int64_t kStreamBytes = int64_t{64} << 20;
    return sizeof(T) == 4 && tile_elements * 4 * launch_.programs.programs() >= kStreamBytes;
  }
  const LaunchState& launch_;
  int id_[3];
};

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
