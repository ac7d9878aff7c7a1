// The program object a kernel body is written against: one program runs a whole tile sequentially
// on one core. The CPU target is this class with a probe that does nothing, the trace target with
// one that records every access. This part deals with shared tiles, pipelines and products.
#pragma once

#include <algorithm>

#include "tile/cpu/dot.h"
#include "tile/cpu/pipeline.h"
#include "tile/cpu/program_base.h"
#include "tile/cpu/shared.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

template <class K, class Probe>
class ProgramHost : public ProgramBase<K, Probe> {
  using Base = ProgramBase<K, Probe>;
  using Base::probe_;

 public:
  // `spare` is room for two times spare_floats<K>().
  CRIA_FN ProgramHost(const LaunchState& launch, int64_t index, float* spare, Probe probe = {})
      : Base(launch, index, probe), spare_(spare) {}

  using Base::trans;
  template <class T, int R, int C>
  CRIA_FN auto trans(View<T, R, C> v) const {
    return Transposed<View<T, R, C>>{v};
  }

  // ---- shared memory
  template <class T, int R, int C, class U>
  CRIA_FN void fetch(View<T, R, C> v, Tensor<U> t, int batch, int r0, int c0,
                     Source at = Source::current()) {
    static_assert(std::is_same_v<T, std::remove_cv_t<U>>, "fetch: view and tensor differ in type");
    probe_.fetch(v, t, batch, r0, c0, at);
    auto& s = *v.stage;
    s.rows = clip(t.rows - r0, R), s.cols = clip(t.cols - c0, C);
    if (s.cols == 0) s.rows = 0;
    s.source = s.rows > 0 ? t.at(batch, r0, c0) : nullptr;
    s.ld = t.ld;
    s.form = Form::kFetched;
  }
  CRIA_FN void fetch_wait() const {}
  // What was fetched outside a pipeline is needed no more: on a GPU what comes next may take its
  // place.
  CRIA_FN void fetch_done() const {}
  // A tile into a view's columns from c0 on.
  template <class T, int R, int C, Expression X>
  CRIA_FN void write(View<T, R, C> v, const X& x, int c0 = 0, Source at = Source::current()) {
    using L = typename X::Layout;
    static_assert(L::rows == R && L::cols <= C, "write: tile and view differ in shape");
    probe_.write(v, L{}, c0, at);
    evaluate(map([](float e) { return rounded_to<T>(e); }, x), v.data + c0, C);
    v.stage->form = Form::kWritten;
  }
  // An accumulator set aside, and back.
  template <class L, int R, int C>
  CRIA_FN void save(Saved<R, C> to, const Tile<float, L>& t, Source at = Source::current()) {
    static_assert(L::rows == R && L::cols == C, "save: tile and place differ in shape");
    probe_.save(L{}, at);
    std::copy_n(t.v, R * C, to.data);
  }
  template <class L, int R, int C>
  CRIA_FN void restore(Tile<float, L>& t, Saved<R, C> from, Source at = Source::current()) {
    static_assert(L::rows == R && L::cols == C, "restore: tile and place differ in shape");
    probe_.restore(L{}, at);
    std::copy_n(from.data, R * C, t.v);
  }
  template <class T, int R, int C>
  CRIA_FN auto read(View<T, R, C> v, Source at = Source::current()) {
    return read(v, typename Base::template DefaultLayout<R, C>{}, at);
  }
  template <class T, int R, int C, TileLayout L>
  CRIA_FN Tile<float, L> read(View<T, R, C> v, L layout, Source at = Source::current()) {
    static_assert(L::rows == R && L::cols == C, "read: layout and view differ in shape");
    require_filled(v);
    probe_.read(v, layout, at);
    return shared_node<L>(v);
  }
  // Into the layout of a rounded accumulator.
  template <class T, class L, int R, int C>
  CRIA_FN void read(Operand<T, L>& to, View<T, R, C> v, Source at = Source::current()) {
    static_assert(L::rows == R && L::cols == C, "read: tile and view differ in shape");
    require_filled(v);
    probe_.read(v, to, at);
    evaluate(shared_node<L>(v), to.v);
  }
  CRIA_FN void sync() const {}
  template <int S, class Fetch, class Consume>
  CRIA_FN void pipeline(Stages<S> s, int n, Fetch fetch, Consume consume) {
    pipeline(s, n, fetch, consume, 0, [](auto&, int, int) {});
  }
  template <int S, class Fetch, class Consume, class Assist>
  CRIA_FN void pipeline(Stages<S>, int n, Fetch fetch, Consume consume, int hand_overs,
                        Assist assist) {
    run_pipeline<S>(*this, n, fetch, consume, hand_overs, assist);
  }
  CRIA_FN void hand_back() const {}
  static constexpr int hands = K::traits.assisted ? kHands : 1;
  // The program that does what is handed over.
  CRIA_FN auto assistant() const {
    using Helper = std::conditional_t<K::traits.assisted, Assistant<K>, K>;
    return ProgramHost<Helper, Probe>(this->launch(), this->index(), spare_, probe_);
  }

  // ---- dot
  template <class L, class A, class B>
  CRIA_FN void dot(Tile<float, L>& acc, const A& a, const B& b, Source at = Source::current()) {
    multiply_operands(acc, a, b, false, at);
  }
  template <class L, class A, class B>
  CRIA_FN void dot(Tile<float, L>& acc, const A& a, const B& b, Overwrite,
                   Source at = Source::current()) {
    multiply_operands(acc, a, b, true, at);
  }
  template <class... Any>
  CRIA_FN void dot_wait(const Any&...) const {}
  template <class T, Expression X>
  CRIA_FN auto cast(Type<T>, const X& x) const {
    Operand<T, typename X::Layout> out;
    evaluate(map([](float e) { return rounded_to<T>(e); }, x), out.v);
    return out;
  }
  // N columns of a rounded accumulator, from c0.
  template <class T, int M, int All, int Warps, int N>
  CRIA_FN auto columns(const Operand<T, Mma<M, All, Warps>>& x, Shape<N>, int c0) const {
    Operand<T, Mma<M, N, Warps>> out;
    for (int r = 0; r < M; ++r)
      for (int c = 0; c < N; ++c) out.v[r * N + c] = x.v[r * All + c0 + c];
    return out;
  }
  template <class T, Expression X, class Staging>
  CRIA_FN void store_tile(Tensor<T> t, int batch, int r0, int c0, const X& x,
                          const Staging& staging, Source at = Source::current()) {
    using L = typename X::Layout;
    probe_.store_tile(L{}, t, batch, r0, c0, staging, at);
    store_node(t.matrix(batch), block_at<L::rows, L::cols>(r0, c0, t.ld), x,
               Base::inside(t, r0, c0), false);
  }

 private:
  template <class L, class T, int R, int C>
  CRIA_FN auto shared_node(View<T, R, C> v) const {
    const Matrix m = plain_floats(v, spare_);
    const auto block = Offsets<R, C, true>{0, m.stride, 1};
    return load_node<L>(m.data, block, Mask{m.outer, m.inner}, 0.f);
  }
  template <class T, int R, int C>
  static CRIA_FN void require_filled(View<T, R, C> v) {
    require(v.stage->form != Form::kEmpty,
            "a shared tile was used before any fetch or write filled it");
  }
  template <class V>
  static CRIA_FN void require_filled(Stacked<V> v) {
    require_filled(v.top), require_filled(v.bottom);
  }
  template <class V>
  static CRIA_FN void require_filled(Transposed<V> v) {
    require_filled(v.view);
  }
  template <class T, class L>
  static CRIA_FN void require_filled(const Operand<T, L>&) {}

  template <class L, class A, class B>
  CRIA_FN void multiply_operands(Tile<float, L>& acc, const A& a, const B& b, bool overwrite,
                                 Source at) {
    static_assert(A::rows == L::rows && A::cols == B::rows && B::cols == L::cols,
                  "dot: operand shapes differ: acc is M x N, a is M x K, b is K x N");
    require_filled(a);
    require_filled(b);
    probe_.dot(L{}, a, b, at);
    multiply<L>(acc.v, operand_a(a, spare_), b, spare_ + spare_floats<K>(), overwrite);
  }

  float* spare_;
};

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
