// The sm_90a lowering: fetch and store_tile are TMA, dot is wgmma, pipeline is a producer warpgroup
// that only fetches and consumer warpgroups that only compute, meeting at mbarriers. A role is a
// type of program: the kernel's body is instantiated once for each, and the producer's program has
// only the members a producer may use (program_producer.h). This is the consumers', and that of the
// assistant, a warpgroup that runs nothing but what the pipelines of an assisted kernel hand over.
//
// Contract: all pipelines of a kernel have the same number of stages; fetches outside a pipeline
// (its prologue) need groups == 1, one prologue for each pipeline; groups that take turns run all
// steps of a pipeline at once; a pipeline hands over as often as it says, and each time the
// assistant hands back once.
#pragma once

#include "tile/cuda/dot_hopper.h"
#include "tile/cuda/hopper_roles.h"
#include "tile/cuda/program_base.h"
#include "tile/cuda/ptx/copy.h"
#include "tile/cuda/shared.h"

namespace cria::tile {
inline namespace cuda {

template <class K>
class ConsumerProgram : public ProgramBase<K, Access::kCutVectors> {
  using Base = ProgramBase<K, Access::kCutVectors>;
  static constexpr bool assists = requires { K::assists; };
  // Named barriers: of warpgroups, of groups' turns, of groups.
  static constexpr int kOfWarpgroups = assists ? 7 : 1, kGroupTurn = 8;
  static constexpr int kGroupSync = assists ? 15 : 12;

 public:
  using Base::groups;
  using Base::threads;
  using Base::tid;
  using Base::warps;
  static constexpr int warpgroups = threads / 128;
  static_assert(threads % 128 == 0, "the Hopper lowering computes in warpgroups of 128 threads");

  CRIA_FN explicit ConsumerProgram(uint32_t barriers)
      : Base(threadIdx.x % threads, kGroupSync + own_group()), bar_{barriers}, group_(own_group()) {
    if constexpr (groups > 1)
      if (group_ == groups - 1) ptx::bar_arrive(kGroupTurn, 2 * threads);
  }

  template <class F>
  CRIA_FN void for_tiles(int n, F f) {
    int i = 0;
#pragma unroll 1
    for (int t = blockIdx.x; t < n; t += gridDim.x, ++i) {
      active_ = groups == 1 || i % groups == group_;
      f(t);
    }
  }

  // Fetches are the producer's; a consumer only notes that a prologue is under way.
  template <class V, class U>
  CRIA_FN void fetch(V, Tensor<U>, int, int, int) {
    prologue_open_ = true;
  }
  CRIA_FN void fetch_wait() {
    if (prologue_open_) {
      prologue_open_ = false;
      if (prologue_held_) next_prologue();
      prologue_held_ = true;
    }
    ptx::mbarrier_wait(bar_.prologue_full(prologue_.stage), prologue_.phase);
  }

  // What was fetched outside a pipeline is needed no more: what comes next may take its place.
  CRIA_FN void fetch_done() {
    if (!prologue_held_) return;
    prologue_held_ = false;
    next_prologue();
  }
  // Until what was stored through a shared tile can be overwritten, too.
  CRIA_FN void sync() {
    if (tid() % 128 == 0) ptx::tma_store_wait_read<0>();
    Base::sync();
  }

  template <int S>
  struct Steps {
    ConsumerProgram& p;
    int n, j = 0;
    // Which of the shared tiles to write for the assistant, once it has done with it.
    CRIA_FN int hand() const {
      static_assert(K::traits.assisted, "hand: a Hopper config that hands over is .assisted");
      ptx::mbarrier_wait(p.bar_.handed_back(p.hands_.stage), p.hands_.phase ^ 1);
      return p.hands_.stage;
    }
    // To the assistant, who begins when all have come here.
    CRIA_FN void hand_over() {
      p.arrive(p.bar_.handed_over(p.hands_.stage));
      p.hands_.template advance<kHands>();
    }
    // All that was handed over.
    CRIA_FN void take_back() const {
      const RingPosition last = p.hands_.template before<kHands>();
      ptx::mbarrier_wait(p.bar_.handed_back(last.stage), last.phase);
    }
    template <class Body>
    CRIA_FN void operator()(Body body) {
      run_to(n, body);
    }
    template <class Body>
    CRIA_FN void operator()(int count, Body body) {
      static_assert(groups == 1, "steps: groups that take turns run all steps at once");
      run_to(j + count, body);
    }
    template <class Body>
    CRIA_FN void one(Body body) {
      static_assert(groups == 1, "steps: groups that take turns run all steps at once");
      run_one(body);
    }

   private:
    // A stage is released once the products that read it are complete: at once, or one step later
    // when the body leaves its products in flight.
    template <class Body>
    CRIA_FN void run_one(Body body) {
      ptx::mbarrier_wait(p.bar_.full(p.at_.stage), p.at_.phase);
      p.in_flight_ = 0;
      body(j++, p.at_.stage);
      if (p.in_flight_) {
        wait_products(p.in_flight_);
        if (p.held_ >= 0) p.release(p.held_);
        p.held_ = p.at_.stage;
      } else {
        if (p.held_ >= 0) p.release(p.held_);
        p.held_ = -1;
        p.release(p.at_.stage);
      }
      p.at_.template advance<S>();
    }
    template <class Body>
    CRIA_FN void run_to(int end, Body body) {
#pragma unroll 1
      while (j < end) run_one(body);
      if constexpr (groups > 1) ptx::bar_arrive(kGroupTurn + (p.group_ + 1) % groups, 2 * threads);
      if (p.held_ >= 0) {
        wait_products(0);
        p.release(p.held_);
        p.held_ = -1;
      }
    }
  };
  template <int S, class Fetch, class Consume>
  CRIA_FN void pipeline(Stages<S> s, int n, Fetch fetch, Consume consume) {
    pipeline(s, n, fetch, consume, 0, [](auto&, int, int) {});
  }
  // The assistant's.
  template <int S, class Fetch, class Consume, class Assist>
    requires(assists)
  CRIA_FN void pipeline(Stages<S>, int, Fetch, Consume, int hand_overs, Assist assist) {
    if (prologue_open_) fetch_wait();
#pragma unroll 1
    for (int i = 0; i < hand_overs; ++i) {
      ptx::mbarrier_wait(bar_.handed_over(hands_.stage), hands_.phase);
      assist(*this, i, hands_.stage);
      hands_.template advance<kHands>();
    }
    fetch_done();
  }
  CRIA_FN void hand_back() {
    if constexpr (assists) arrive(bar_.handed_back(hands_.stage));
  }
  template <int S, class Fetch, class Consume, class Assist>
    requires(!assists)
  CRIA_FN void pipeline(Stages<S>, int n, Fetch, Consume consume, int, Assist) {
    if (!active_) {
      at_.skip<S>(n);
      return;
    }
    // NOTE: a parity wait can lag by one phase only, so groups enter the main loop in turn.
    if constexpr (groups > 1) ptx::bar_sync(kGroupTurn + group_, 2 * threads);
    Steps<S> steps{*this, n};
    consume(*this, steps);
    if (K::traits.prologues == 1) fetch_done();
  }

  // ---- dot: asynchronous until dot_wait
  template <class T, class LA, class B, class L>
  CRIA_FN void dot(Tile<float, L>& acc, const Operand<T, LA>& a, B b) {
    begin_product(acc);
    multiply_registers<1>(acc, a, b);
    end_product();
  }
  template <class T, class LA, class B, class L>
  CRIA_FN void dot(Tile<float, L>& acc, const Operand<T, LA>& a, B b, Overwrite) {
    begin_product(acc);
    multiply_registers<0>(acc, a, b);
    end_product();
  }
  template <class A, class B, class L>
    requires requires { A::rows; }
  CRIA_FN void dot(Tile<float, L>& acc, A a, B b) {
    begin_product(acc);
    multiply_shared<1, warpgroups>(acc, a, b, own_warpgroup());
    end_product();
  }
  template <class A, class B, class L>
    requires requires { A::rows; }
  CRIA_FN void dot(Tile<float, L>& acc, A a, B b, Overwrite) {
    begin_product(acc);
    multiply_shared<0, warpgroups>(acc, a, b, own_warpgroup());
    end_product();
  }
  template <int N, class... Tiles>
  CRIA_FN void dot_wait(Pending<N>, Tiles&... t) {
    wait_products(N);
    in_flight_ = min_of(in_flight_, N);
    (pin(t), ...);
  }
  template <class... Tiles>
    requires(is_tile<Tiles>&&...)
  CRIA_FN void dot_wait(Tiles&... t) { dot_wait(pending<0>, t...); }
  template <class T, class L>
  CRIA_FN Operand<T, L> cast(Type<T>, const Tile<float, L>& t) {
    static_assert(sizeof(T) == 2, "wgmma's register operand is bf16 or f16");
    Operand<T, L> out;
#pragma unroll
    for (int i = 0; i < L::regs / 2; ++i) out.v[i] = pack2<T>(t.v[2 * i], t.v[2 * i + 1]);
    return out;
  }

  // Registers -> swizzled panel of 64 columns -> TMA store; each warpgroup stores its own 64-row
  // strips. `staging` has a whole number of panel buffers per group.
  template <class T, class X, int R, int C, int Count>
  CRIA_FN void store_tile(Tensor<T> t, int batch, int r0, int c0, const X& tile,
                          const SharedTile<T, R, C, Count>& staging) {
    static_assert(C % 64 == 0 && Count % groups == 0,
                  "store_tile: staging needs whole 64-column panels per group");
    store_through<R, C / 64 * Count / groups>(t, batch, r0, c0, tile,
                                              ptx::shared_address(staging.bytes));
  }
  // Through a tile that was fetched outside a pipeline and is not needed any more.
  template <class T, class X, int R, int C>
  CRIA_FN void store_tile(Tensor<T> t, int batch, int r0, int c0, const X& tile,
                          View<T, R, C> staging) {
    static_assert(groups == 1 && C == X::Layout::cols, "store_tile: a view as large as the tile");
    store_through<R, 0>(t, batch, r0, c0, tile, staging.address);
  }
  template <class T, class L, int R, int C>
  CRIA_FN void read(Operand<T, L>& to, View<T, R, C> v) {
    read_block(tid(), to, v);
    reads_ = true;
  }
  // A tile into a view's columns from c0 on, in whole panels.
  template <class T, int R, int C, class X>
  CRIA_FN void write(View<T, R, C> v, const X& tile, int c0 = 0) {
    using L = typename X::Layout;
    static_assert(L::rows == R && L::cols <= C && L::cols % v.panel_cols == 0,
                  "write: tile and view differ in shape");
#pragma unroll
    for (int panel = 0; panel < L::cols / v.panel_cols; ++panel)
      write_panel<T>(v.address + (c0 / v.panel_cols + panel) * v.panel_bytes, tile, panel);
    ptx::fence_async_proxy();
  }
  CRIA_FN void finish() { ptx::tma_store_wait_read<0>(); }

  // What store_tile has handed to TMA may be under way when these tell others that it is there.
  template <class Never = K>
  CRIA_FN void signal(int32_t*) {
    static_assert(!sizeof(Never), "signal: not in the Hopper lowering, whose stores are TMA's");
  }
  template <class Never = K>
  CRIA_FN void grid_sync() {
    static_assert(!sizeof(Never), "grid_sync: not in the Hopper lowering, whose stores are TMA's");
  }

 private:
  // Buffers: how many panels of staging there are to take in turn; 0: the tile's own place.
  template <int R, int Buffers, class T, class X>
  CRIA_FN void store_through(const Tensor<T>& t, int batch, int r0, int c0, const X& tile,
                             uint32_t staging) {
    using L = typename X::Layout;
    static_assert(R == L::rows && L::cols % 64 == 0,
                  "store_tile: staging needs the tile's rows, in whole 64-column panels");
    constexpr int panels = L::cols / 64, panel_bytes = R * 128;
    constexpr int map_64_rows = 1 * kMapBytes;
    constexpr bool in_turn = Buffers > 1 && Buffers != panels;
    const int wg = own_warpgroup();
    const int barrier = kOfWarpgroups + group_ * warpgroups + wg;
    const uint32_t mine = staging + group_ * Buffers * panel_bytes;
#pragma unroll
    for (int panel = 0; panel < panels; ++panel) {
      uint32_t base = mine + panel * panel_bytes;
      if constexpr (Buffers > 0) base = mine + stores_++ % Buffers * panel_bytes;
      if constexpr (!in_turn) {
        if constexpr (Buffers > 0)
          if (tid() % 128 == 0) ptx::tma_store_wait_read<Buffers - 1>();
        if (Buffers > 0 || panel == 0) ptx::bar_sync(barrier, 128);
      }
      write_panel<T>(base, tile, panel);
      ptx::fence_async_proxy();
      if constexpr (in_turn)  // the barrier then tells all that the next buffer is free, too
        if (tid() % 128 == 0) ptx::tma_store_wait_read<Buffers - 2>();
      ptx::bar_sync(barrier, 128);
      if (tid() % 128 == 0) {
#pragma unroll
        for (int s = 0; s < L::strips; ++s) {
          const int row = (s * warpgroups + wg) * 64;
          ptx::tma_store(static_cast<const char*>(t.descriptor) + map_64_rows,
                         {c0 + panel * 64, r0 + row, batch % t.heads, batch / t.heads},
                         base + row * 128);
        }
        ptx::tma_store_commit();
      }
    }
  }
  // 64 columns of a tile, rounded, to a panel of a shared tile.
  template <class T, class X>
  CRIA_FN void write_panel(uint32_t base, const X& tile, int panel) const {
    using L = typename X::Layout;
    const int lane = tid() % 32, warp = tid() / 32;
#pragma unroll
    for (int s = 0; s < L::strips; ++s) {
      const int row = (s * warps + warp) * 16 + lane % 16;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int word = (s * L::groups + panel * 8 + i * 2) * 2;
        ptx::stmatrix(base + swizzled(row, i * 2 + lane / 16), packed_word<T>(tile, word),
                      packed_word<T>(tile, word + 1), packed_word<T>(tile, word + 2),
                      packed_word<T>(tile, word + 3));
      }
    }
  }
  // What was fetched outside a pipeline is no longer needed, and stored if that was its place.
  CRIA_FN void next_prologue() {
    if (tid() % 128 == 0) ptx::tma_store_wait_read<0>();
    finish_reads();
    arrive(bar_.prologue_empty(prologue_.stage));
    prologue_.template advance<K::traits.prologues>();
  }
  // NOTE: an arrival does not wait for ldmatrix: without a fence, the next fetch can overwrite what
  // is still to be read.
  CRIA_FN void finish_reads() {
    if (reads_) ptx::fence_async_proxy();
    reads_ = false;
  }
  static CRIA_FN int warp_uniform(int x) { return __shfl_sync(~0u, x, 0); }
  static CRIA_FN int own_group() { return groups > 1 ? warp_uniform(threadIdx.x / threads) : 0; }
  CRIA_FN int own_warpgroup() const { return warpgroups > 1 ? warp_uniform(tid() / 128) : 0; }
  // Elements 2 i and 2 i + 1 of a tile, rounded.
  template <class T, class L>
  static CRIA_FN uint32_t packed_word(const Tile<float, L>& t, int i) {
    return pack2<T>(t.v[2 * i], t.v[2 * i + 1]);
  }
  template <class T, class L>
  static CRIA_FN uint32_t packed_word(const Operand<T, L>& t, int i) {
    return t.v[i];
  }
  static CRIA_FN void wait_products(int n) {
    if (n == 0)
      ptx::wgmma_wait<0>();
    else if (n == 1)
      ptx::wgmma_wait<1>();
    else
      ptx::wgmma_wait<2>();
  }
  CRIA_FN void release(int stage) {
    finish_reads();
    arrive(bar_.empty(stage));
  }
  // A warp counts once.
  CRIA_FN void arrive(uint32_t barrier) const {
    __syncwarp();
    if (tid() % 32 == 0) ptx::mbarrier_arrive(barrier);
  }
  template <class L>
  static CRIA_FN void begin_product(Tile<float, L>& acc) {
    pin(acc);
    ptx::wgmma_fence();
  }
  CRIA_FN void end_product() {
    ptx::wgmma_commit();
    ++in_flight_;
  }

  BarrierAddresses bar_;
  RingPosition at_, prologue_, hands_;
  int group_, in_flight_ = 0, held_ = -1, stores_ = 0;
  bool prologue_open_ = false, prologue_held_ = false, active_ = true;
  bool reads_ = false;  // of shared tiles, since one was last released
};

}  // namespace cuda
}  // namespace cria::tile
