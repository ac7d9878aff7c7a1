// The probe of a traced program: derives every request from the layout maps the GPU uses, and
// checks that what a lazy load or fetch refers to has not changed by the time it is used.
#pragma once

#include <bit>
#include <memory>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "tile/aligned.h"
#include "tile/cpu/program_host.h"
#include "tile/trace/analysis.h"
#include "tile/trace/shared_model.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

// What all probes of a traced launch share.
struct Recording {
  Trace& trace;
  int threads;
  Lowering lowering;
  Access access;  // of the instantiation that runs
  int64_t program = 0;

  struct Block {  // of a tensor, as it was when fetched
    const unsigned char* from;
    int64_t stride;
    int rows, bytes, operand;
    std::vector<unsigned char> copy;
  };
  std::unordered_map<const void*, Block> fetched = {};  // by stage
};

// A load that compares what it reads with what was there when the kernel called load.
template <class Node>
struct Watched {
  using Element = typename Node::Element;
  using Layout = typename Node::Layout;
  Node node;
  std::shared_ptr<const std::vector<Element>> before;
  const Recording* recording;
  Source source;

  template <Region R>
  Element at(int r, int c) const {
    const Element now = node.template at<R>(r, c);
    const size_t place = (Layout::rows == 1 ? 0 : r * Layout::cols) + (Layout::cols == 1 ? 0 : c);
    if (std::bit_cast<uint32_t>(now) !=
        std::bit_cast<uint32_t>((*before)[place])) {  // NaN is itself
      const Trace& t = recording->trace;
      const auto address = reinterpret_cast<uint64_t>(node.address(r, c));
      t.complain(
          t.describe(t.operand_of(address, address, false), address) +
              " was overwritten between its load and its use: wrap the loaded value in p.keep()",
          recording->program, source.file_name(), source.line());
    }
    return now;
  }
  Extent extent() const { return node.extent(); }
};

class Recorder {
  AccessRecord record(AccessKind kind, int warp, int operand, int bytes, Source at) const {
    AccessRecord r{kind,    s_->program, warp, at.file_name(), static_cast<int>(at.line()),
                   operand, bytes,       {}};
    for (uint64_t& a : r.address) a = AccessRecord::kInactive;
    return r;
  }
  // One request for shared memory per call. Their types are deduced, so they come before their uses.
  auto shared_request(AccessKind kind, Source at) const {
    return [this, kind, at](int warp, int bytes, auto address) {
      AccessRecord r = record(kind, warp, -1, bytes, at);
      bool any = false;
      for (int lane = 0; lane < AccessRecord::kLanes; ++lane) {
        const int64_t a = address(lane);
        if (a < 0) continue;
        r.address[lane] = static_cast<uint64_t>(a);
        any = true;
      }
      if (any) s_->trace.add(r);
    };
  }
  auto shared_load(Source at) const { return shared_request(AccessKind::kSharedLoad, at); }
  auto shared_store(Source at) const { return shared_request(AccessKind::kSharedStore, at); }

 public:
  explicit Recorder(Recording* recording) : s_(recording) {}

  // ---- global memory
  template <class L, class T, class Off>
  void load(L, const T* base, Off off, Mask mask, Source at) const {
    tile_access<L>(AccessKind::kLoad, base, off, mask, at);
  }
  template <class L, class T, class Off>
  void store(L, const T* base, Off off, Mask mask, Source at) const {
    tile_access<L>(AccessKind::kStore, base, off, mask, at);
  }
  // The rows of both tables that a tile's rows meet, N columns of each.
  template <class L, int N>
  void load_pairs(L, Pairs<N>, const PairTables& tables, Mask mask, Source at) const {
    if (mask.cols <= 0) return;
    const int vec = s_->access == Access::kElements ? 1 : L::vec;
    for (const Tensor<const float>& table : {tables.x, tables.y})
      for (int row = 0; row < L::Row::regs; ++row)
        for (int i = 0; i < pair_distance<L, N>(); i += vec)
          for (int warp = 0; warp < L::threads / 32; ++warp)
            global(AccessKind::kLoad, warp, table.data, vec * sizeof(float), at, [&](int lane) {
              const int t = warp * 32 + lane, c = L::Col::col(t, i);
              return table.at(0, tables.row(min_of(L::Row::row(t, row), mask.rows - 1)), c);
            });
  }
  // All threads load a scalar; one stores it.
  template <class T>
  void load_scalar(const T* from, Source at) const {
    for (int warp = 0; warp < s_->threads / 32; ++warp)
      global(AccessKind::kLoad, warp, from, sizeof(T), at, [&](int) { return from; });
  }
  template <class T>
  void store_scalar(const T* to, Source at) const {
    global(AccessKind::kStore, 0, to, sizeof(T), at,
           [&](int lane) { return lane == 0 ? to : nullptr; });
  }
  template <class T, class I>
  void gather(const T* base, const I& index, Mask mask, Source at) const {
    indexed(AccessKind::kLoad, base, index, mask, at);
  }
  template <class T, class I>
  void scatter(const T* base, const I& index, Mask mask, Source at) const {
    indexed(AccessKind::kStore, base, index, mask, at);
  }
  template <class Node>
  Watched<Node> watch(const Node& node, Source at) const {
    using L = typename Node::Layout;
    std::vector<typename Node::Element> before(size_t{L::rows} * L::cols);
    evaluate(node, before.data());
    return {node, std::make_shared<std::vector<typename Node::Element>>(std::move(before)), s_, at};
  }

  // ---- reductions and transposes
  template <class L>
  void reduce(L, Source at) const {
    model_across_warps(L::threads, L::threads / 32, 1, shared_store(at), shared_load(at));
  }
  template <class L>
  void reduce(L, Axis<1>, Source at) const {
    combine(typename L::Row{}, at);
  }
  template <class L>
  void reduce(L, Axis<0>, Source at) const {
    model_columns<L>(shared_store(at), shared_load(at));
  }
  template <class R>
  void combine(R, Source at) const {
    model_across_warps(R::threads, R::across / 32, R::regs, shared_store(at), shared_load(at));
  }
  template <class L, class Out, int P>
  void transpose(L, Out, Pad<P>, Source at) const {
    constexpr int stride = L::rows + P, width = staged_width<Out>(stride);
    each_register<L>(4, shared_store(at), [](int r, int c) { return (c * stride + r) * 4; });
    each_register<Out, width>(4 * width, shared_load(at),
                              [](int r, int c) { return (r * stride + c) * 4; });
  }

  // ---- shared tiles
  template <class T, int R, int C, class U>
  void fetch(View<T, R, C> v, const Tensor<U>& t, int batch, int r0, int c0, Source at) const {
    remember(v, t, batch, r0, c0);
    if (s_->lowering == Lowering::kHopper)
      bulk_copies<R, C, T>(AccessKind::kBulkLoad, t, batch, r0, c0, tallest_box(R), at);
    else if (s_->access != Access::kElements)
      async_copies<R, C, T>(t, batch, r0, c0, at);
    else
      element_copies<R, C, T>(t, batch, r0, c0, at);
  }
  template <class T, int R, int C, class L>
  void write(View<T, R, C>, L, int c0, Source at) const {
    if constexpr (requires { L::warps; })
      if (s_->lowering == Lowering::kHopper) return staged_stores<L>(at);
    each_register<L>(sizeof(T), shared_store(at),
                     [=](int r, int c) { return Swizzled<T, R>::offset(r, c0 + c); });
  }
  template <class L>
  void save(L, Source at) const {
    model_saved<L>(shared_store(at));
  }
  template <class L>
  void restore(L, Source at) const {
    model_saved<L>(shared_load(at));
  }
  template <class T, int R, int C, class L>
  void read(View<T, R, C> v, L, Source at) const {
    check_unchanged(v, at);
    each_register<L>(sizeof(T), shared_load(at), Swizzled<T, R>::offset);
  }
  // As fragments of dot's operand A: an accumulator's layout is theirs.
  template <class T, int R, int C, class L>
  void read(View<T, R, C> v, const Operand<T, L>&, Source at) const {
    if constexpr (sizeof(T) == 2) {
      check_unchanged(v, at);
      for (int warp = 0; warp < L::warps; ++warp)
        for (int s = 0; s < L::strips; ++s)
          for (int kk = 0; kk < L::groups / 2; ++kk)
            model_a_fragment(v, warp, (s * L::warps + warp) * 16, kk, shared_load(at));
    } else {
      read(v, L{}, at);
    }
  }
  template <class L, class A, class B>
  void dot(L, const A& a, const B& b, Source at) const {
    check_unchanged(a, at);
    check_unchanged(b, at);
    if (s_->lowering == Lowering::kAmpere)
      model_dot<L>(a, b, shared_load(at));  // wgmma reads by itself
  }
  template <class L, class T, class Staging>
  void store_tile(L, const Tensor<T>& t, int batch, int r0, int c0, const Staging&,
                  Source at) const {
    if (s_->lowering == Lowering::kHopper) {
      staged_stores<L>(at);
      bulk_copies<L::rows, L::cols, T>(AccessKind::kBulkStore, t, batch, r0, c0, 64, at);
    } else {
      store(L{}, t.matrix(batch), block_at<L::rows, L::cols>(r0, c0, t.ld),
            Mask{t.rows - r0, t.cols - c0}, at);
    }
  }

 private:
  [[noreturn]] void complain(const std::string& what, Source at) const {
    s_->trace.complain(what, s_->program, at.file_name(), static_cast<int>(at.line()));
  }

  // One request of a warp; address(lane) is null where the lane is inactive, and inside(lane) says
  // how many elements there are up to the edge that may cut the lane's vector.
  template <class T, class Address>
  void global(AccessKind kind, int warp, const T* base, int bytes, Source at,
              Address address) const {
    global(kind, warp, base, bytes, at, address, [](int) { return 16; });
  }
  template <class T, class Address, class Inside>
  void global(AccessKind kind, int warp, const T* base, int bytes, Source at, Address address,
              Inside inside) const {
    constexpr int element = sizeof(T);
    AccessRecord r = record(kind, warp, -1, bytes, at);
    const T* first = nullptr;
    for (int lane = 0; lane < AccessRecord::kLanes; ++lane) {
      const T* a = address(lane);
      if (!a) continue;
      r.address[lane] = reinterpret_cast<uint64_t>(a);
      const int beyond = max_of(bytes / element - inside(lane), 0);
      r.beyond[lane] = static_cast<uint8_t>(beyond * element);
      if (!first) first = a;
    }
    if (!first) return;
    r.operand = s_->trace.operand_of(reinterpret_cast<uint64_t>(base),
                                     reinterpret_cast<uint64_t>(first), is_write(kind));
    s_->trace.add(r);
  }
  template <class L, class T, class Off>
  void tile_access(AccessKind kind, const T* base, Off off, Mask mask, Source at) const {
    const int vec = Off::unit && s_->access != Access::kElements
                        ? min_of(L::vec, 16 / static_cast<int>(sizeof(T)))
                        : 1;
    const bool cut = mask.cuts(vec, L::cols);
    if (cut && mask.rows > 0 && s_->access == Access::kVectors)
      complain("a mask cuts a vector of " + std::to_string(vec) + " elements at column " +
                   std::to_string(mask.cols) +
                   " of the tile, though the widths of all operands are multiples of it: then "
                   "bounds must be, too",
               at);
    const int whole = is_write(kind) ? vec : 1;  // elements inside for which it is one access
    for (int g = 0; g < L::regs; g += vec)
      for (int warp = 0; warp < L::threads / 32; ++warp) {
        const auto row = [&](int lane) { return L::row(warp * 32 + lane, g); };
        const auto col = [&](int lane) { return L::col(warp * 32 + lane, g); };
        global(
            kind, warp, base, vec * sizeof(T), at,
            [&](int lane) -> const T* {
              const int r = row(lane), c = col(lane);
              return mask(r, c, whole) ? base + off(r, c) : nullptr;
            },
            [&](int lane) { return mask.cols - col(lane); });
        if (whole == 1 || !cut) continue;
        for (int i = 0; i < vec - 1; ++i)  // stored one by one
          global(kind, warp, base, sizeof(T), at, [&](int lane) -> const T* {
            const int r = row(lane), c = col(lane);
            return mask(r, c + i) && !mask(r, c, vec) ? base + off(r, c + i) : nullptr;
          });
      }
  }
  template <class T, class I>
  void indexed(AccessKind kind, const T* base, const I& index, Mask mask, Source at) const {
    using L = typename I::Layout;
    for (int i = 0; i < L::regs; ++i)
      for (int warp = 0; warp < L::threads / 32; ++warp)
        global(kind, warp, base, sizeof(T), at, [&](int lane) -> const T* {
          const int r = L::row(warp * 32 + lane, i), c = L::col(warp * 32 + lane, i);
          return mask(r, c) ? base + index.template at<Region::kEdge>(r, c) : nullptr;
        });
  }

  // How threads share the 16-byte chunks of a fetch: visit(warp, row of a lane, chunk of a lane).
  template <class F>
  void chunk_passes(int rows, int per_row, F visit) const {
    const int across = std::gcd(per_row, s_->threads), down = s_->threads / across;
    for (int first = 0; first < per_row; first += across)
      for (int i = 0; i < rows; i += down)
        for (int warp = 0; warp < s_->threads / 32; ++warp)
          visit(
              warp, [=](int lane) { return i + (warp * 32 + lane) / across; },
              [=](int lane) { return first + (warp * 32 + lane) % across; });
  }
  // cp.async; what lies outside the tensor is filled with zeros.
  template <int R, int C, class T, class U>
  void async_copies(const Tensor<U>& t, int batch, int r0, int c0, Source at) const {
    using S = Swizzled<T, R>;
    const U* base = t.matrix(batch);
    chunk_passes(R, C / S::chunk, [&](int warp, auto row, auto chunk) {
      const auto col = [&](int lane) { return c0 + chunk(lane) * S::chunk; };
      global(
          AccessKind::kAsyncCopy, warp, base, 16, at,
          [&](int lane) -> const U* {
            const int r = r0 + row(lane), c = col(lane);
            return row(lane) < R && r < t.rows && c < t.cols ? base + r * t.ld + c : nullptr;
          },
          [&](int lane) { return t.cols - col(lane); });
      shared_request(AccessKind::kSharedFill, at)(warp, 16, [&](int lane) -> int64_t {
        return row(lane) < R ? S::chunk_offset(row(lane), chunk(lane)) : -1;
      });
    });
  }
  // Operands that do not allow 16-byte accesses: the same chunks, element by element through
  // registers.
  template <int R, int C, class T, class U>
  void element_copies(const Tensor<U>& t, int batch, int r0, int c0, Source at) const {
    using S = Swizzled<T, R>;
    const U* base = t.matrix(batch);
    chunk_passes(R, C / S::chunk, [&](int warp, auto row, auto chunk) {
      for (int e = 0; e < S::chunk; ++e) {
        auto col = [&](int lane) { return chunk(lane) * S::chunk + e; };
        global(AccessKind::kLoad, warp, base, sizeof(T), at, [&](int lane) -> const U* {
          const int r = r0 + row(lane), c = c0 + col(lane);
          return row(lane) < R && r < t.rows && c < t.cols ? base + r * t.ld + c : nullptr;
        });
        shared_store(at)(warp, sizeof(T), [&](int lane) -> int64_t {
          return row(lane) < R ? S::offset(row(lane), col(lane)) : -1;
        });
      }
    });
  }
  // TMA: boxes of one 128-byte panel and `height` rows, clipped to the tensor.
  static constexpr int tallest_box(int rows) { return min_of(rows & -rows, 256); }
  template <int R, int C, class T, class U>
  void bulk_copies(AccessKind kind, const Tensor<U>& t, int batch, int r0, int c0, int height,
                   Source at) const {
    constexpr int panel = 128 / sizeof(T);
    for (int c = c0; c < c0 + C; c += panel)
      for (int r = r0; r < r0 + R; r += height) {
        const int rows = min_of(height, t.rows - r), cols = min_of(panel, t.cols - c);
        if (rows <= 0 || cols <= 0) continue;
        const auto from = reinterpret_cast<uint64_t>(t.at(batch, r, c));
        AccessRecord box = record(kind, 0, s_->trace.operand_of(from, from, is_write(kind)),
                                  cols * static_cast<int>(sizeof(T)), at);
        box.address[0] = from;
        box.rows = rows;
        box.row_stride = t.ld * static_cast<int64_t>(sizeof(T));
        s_->trace.add(box);
      }
  }
  // stmatrix into panels of 64 columns: four 16 x 16 blocks per strip and panel.
  template <class L>
  void staged_stores(Source at) const {
    auto store = shared_store(at);
    for (int panel = 0; panel < L::cols / 64; ++panel)
      for (int warp = 0; warp < L::warps; ++warp)
        for (int s = 0; s < L::strips; ++s)
          for (int i = 0; i < 4; ++i)
            store(warp, 16, [&](int lane) -> int64_t {
              const int row = (s * L::warps + warp) * 16 + lane % 16;
              return swizzled(row, i * 2 + lane / 16);
            });
  }

  // ---- fetched blocks must not change before their use
  template <class T, int R, int C, class U>
  void remember(View<T, R, C> v, const Tensor<U>& t, int batch, int r0, int c0) const {
    Recording::Block b{nullptr,
                       t.ld * static_cast<int64_t>(sizeof(T)),
                       clip(t.rows - r0, R),
                       clip(t.cols - c0, C) * static_cast<int>(sizeof(T)),
                       -1,
                       {}};
    if (b.rows > 0 && b.bytes > 0) {
      b.from = reinterpret_cast<const unsigned char*>(t.at(batch, r0, c0));
      const auto address = reinterpret_cast<uint64_t>(b.from);
      b.operand = s_->trace.operand_of(address, address, false);
      for (int r = 0; r < b.rows; ++r)
        b.copy.insert(b.copy.end(), b.from + r * b.stride, b.from + r * b.stride + b.bytes);
    }
    s_->fetched[v.stage] = std::move(b);
  }
  template <class T, int R, int C>
  void check_unchanged(View<T, R, C> v, Source at) const {
    if (v.stage->form == Form::kWritten) return;
    const Recording::Block& b = s_->fetched.at(v.stage);
    if (!b.from) return;
    for (int r = 0; r < b.rows; ++r)
      for (int i = 0; i < b.bytes; ++i)
        if (b.from[r * b.stride + i] != b.copy[r * b.bytes + i])
          complain(
              s_->trace.describe(b.operand, reinterpret_cast<uint64_t>(b.from + r * b.stride + i)) +
                  " was overwritten between its fetch and its use: store after the last use",
              at);
  }
  template <class V>
  void check_unchanged(Stacked<V> v, Source at) const {
    check_unchanged(v.top, at), check_unchanged(v.bottom, at);
  }
  template <class V>
  void check_unchanged(Transposed<V> v, Source at) const {
    check_unchanged(v.view, at);
  }
  template <class T, class L>
  void check_unchanged(const Operand<T, L>&, Source) const {}

  Recording* s_;
};

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
