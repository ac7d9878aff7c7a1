// The producer of the sm_90a lowering, one elected thread: it runs ahead of the consumers
// (program_hopper.h) and fetches, by TMA, into the stages they have released.
#pragma once

#include <bit>

#include "tile/cuda/hopper_roles.h"
#include "tile/cuda/program_base.h"
#include "tile/cuda/ptx/copy.h"
#include "tile/cuda/shared.h"

namespace cria::tile {
inline namespace cuda {

template <class K>
class ProducerProgram : public ProgramId {
 public:
  CRIA_FN explicit ProducerProgram(uint32_t barriers) : bar_{barriers} {}

  template <int N>
  CRIA_FN Range<N> arange(Shape<N>) const {
    return {0};
  }
  template <class F>
  CRIA_FN void for_tiles(int n, F f) {
#pragma unroll 1
    for (int t = blockIdx.x; t < n; t += gridDim.x) f(t);
  }
  template <class T, int R, int C, class U>
  CRIA_FN void fetch(View<T, R, C> v, Tensor<U> t, int batch, int r0, int c0) {
    static_assert(R % 32 == 0, "fetch: TMA boxes are 32, 64, 128 or 256 rows");
    constexpr int height = min_of(R & -R, 256), box = std::countr_zero(unsigned(height)) - 5;
    if (!in_pipeline_ && !prologue_open_) {
      wait_for_previous_grid();
      ptx::mbarrier_wait(bar_.prologue_empty(prologue_.stage), prologue_.phase ^ 1);
      prologue_open_ = true;
    }
    const uint32_t done = in_pipeline_ ? bar_.full(at_.stage) : bar_.prologue_full(prologue_.stage);
    expected_ += R * C * int(sizeof(T));  // announced once, by the arrival that closes the stage
    const char* map = static_cast<const char*>(t.descriptor) + box * kMapBytes;
#pragma unroll
    for (int panel = 0; panel < C / v.panel_cols; ++panel)
#pragma unroll
      for (int r = 0; r < R; r += height)
        ptx::tma_load(v.address + panel * v.panel_bytes + r * 128, map,
                      {c0 + panel * v.panel_cols, r0 + r, batch % t.heads, batch / t.heads}, done);
  }
  CRIA_FN void fetch_wait() { close_prologue(); }
  template <int S, class Fetch, class... Others>
  CRIA_FN void pipeline(Stages<S>, int n, Fetch fetch, const Others&...) {
    static_assert(S <= kMaxStages, "pipeline: too many stages");
    close_prologue();
    wait_for_previous_grid();
#pragma unroll 1
    for (int j = 0; j < n; ++j) {
      ptx::mbarrier_wait(bar_.empty(at_.stage), at_.phase ^ 1);
      in_pipeline_ = true;
      expected_ = 0;
      fetch(j, at_.stage);
      ptx::mbarrier_arrive_expect(bar_.full(at_.stage), expected_);
      expected_ = 0;
      in_pipeline_ = false;
      at_.advance<S>();
    }
  }

 private:
  // Before the first fetch, but after what leads up to it.
  CRIA_FN void wait_for_previous_grid() {
    if (!begun_) ptx::wait_for_previous_grid();
    begun_ = true;
  }
  CRIA_FN void close_prologue() {
    if (!prologue_open_) return;
    prologue_open_ = false;
    ptx::mbarrier_arrive_expect(bar_.prologue_full(prologue_.stage), expected_);
    prologue_.template advance<K::traits.prologues>();
    expected_ = 0;
  }
  BarrierAddresses bar_;
  RingPosition at_, prologue_;
  int expected_ = 0;
  bool prologue_open_ = false, in_pipeline_ = false, begun_ = false;
};

}  // namespace cuda
}  // namespace cria::tile
