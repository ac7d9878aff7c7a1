// The lowering for every GPU from sm_80: fetch is cp.async, pipeline a multistage loop in which all
// threads fetch and compute, dot is mma.sync.
#pragma once

#include <numeric>

#include "tile/cuda/dot_ampere.h"
#include "tile/cuda/program_base.h"
#include "tile/cuda/ptx/copy.h"

namespace cria::tile {
inline namespace cuda {

template <class K, Access How>
struct ProgramAmpere : ProgramBase<K, How> {
  using Base = ProgramBase<K, How>;
  using Base::Base;
  using Base::sync;
  using Base::threads;
  using Base::tid;
  using Base::warps;

  // ---- shared memory
  template <class T, int R, int C, class U>
  CRIA_FN void fetch(View<T, R, C> v, Tensor<U> t, int batch, int r0, int c0) {
    static_assert(std::is_same_v<T, std::remove_cv_t<U>>, "fetch: view and tensor differ in type");
    // A pass of all threads copies `down` rows of `across` chunks; a thread keeps its columns over
    // the rows.
    constexpr int per_row = C / v.chunk, across = std::gcd(per_row, threads);
    constexpr int down = threads / across;
    const int r = tid() / across;
    const auto copy_chunks = [&](auto copy) {
#pragma unroll
      for (int first = 0; first < per_row; first += across) {
        const int chunk = first + tid() % across, c = c0 + chunk * v.chunk;
        const int valid = min_of(t.cols - c, v.chunk);  // elements of this chunk inside the tensor
        const U* from = t.at(batch, r0 + r, 0) + c;
#pragma unroll(How == Access::kElements ? 1 : R)
        for (int i = 0; i < R; i += down, from += down * t.ld) {
          if (R % down != 0 && i + r >= R) break;
          const bool inside = valid > 0 && r0 + r + i < t.rows;
          copy(v.address + v.chunk_offset(r + i, chunk), from, inside, valid);
        }
      }
    };
    if constexpr (How == Access::kElements) {
      copy_chunks([](uint32_t to, auto from, bool inside, int valid) {
        copy_elements<View<T, R, C>::chunk>(to, from, inside ? valid : 0);
      });
    } else {
      if (How == Access::kCutVectors && Mask{.cols = t.cols - c0}.cuts(v.chunk, C))
        copy_chunks([](uint32_t to, auto from, bool inside, int valid) {
          ptx::copy_async_first(to, from, inside ? valid * uint32_t{sizeof(T)} : 0);
        });
      else  // a chunk lies inside as a whole, or not at all
        copy_chunks(
            [](uint32_t to, auto from, bool inside, int) { ptx::copy_async_16(to, from, inside); });
    }
  }
  CRIA_FN void fetch_wait() {
    ptx::copy_async_commit();
    wait_stages<0>();
  }
  // What was fetched outside a pipeline is needed no more.
  CRIA_FN void fetch_done() {}
  // A tile into a view's columns from c0 on.
  template <class T, int R, int C, class X>
  CRIA_FN void write(View<T, R, C> v, const X& x, int c0 = 0) {
    using L = typename X::Layout;
    static_assert(L::rows == R && L::cols <= C, "write: tile and view differ in shape");
#pragma unroll
    for (int i = 0; i < L::regs; ++i)
      write_element(v, L::row(tid(), i), c0 + L::col(tid(), i), element<L>(x, i));
  }
  template <class T, int R, int C>
  CRIA_FN auto read(View<T, R, C> v) {
    using L = typename Base::template DefaultLayout<R, C>;
    Tile<float, L> t;
#pragma unroll
    for (int i = 0; i < L::regs; ++i) t.v[i] = read_element(v, L::row(tid(), i), L::col(tid(), i));
    return t;
  }
  template <class T, class L, int R, int C>
  CRIA_FN void read(Operand<T, L>& to, View<T, R, C> v) {
    read_block(tid(), to, v);
  }

  // ---- pipeline: one barrier per step: wait for stage j, refill the stage that step j - 1 freed,
  // compute
  template <int S, class Fetch, class Assist>
  struct Steps {
    ProgramAmpere& p;
    Fetch& fetch;
    Assist& assist;
    int n, j = 0, handed = 0;
    CRIA_FN int hand() {
      p.sync();
      return 0;
    }
    CRIA_FN void hand_over() {
      p.sync();
      assist(p, handed++, 0);
    }
    CRIA_FN void take_back() { p.sync(); }
    template <class Body>
    CRIA_FN void operator()(Body body) {
      (*this)(n - j, body);
    }
    template <class Body>
    CRIA_FN void operator()(int count, Body body) {
      const int end = j + count;
#pragma unroll 1
      while (j < end) one(body);
    }
    template <class Body>
    CRIA_FN void one(Body body) {
      p.template wait_stages<S - 2>();
      const int next = j + S - 1;
      if (next < n) fetch(next, next % S);
      ptx::copy_async_commit();
      body(j, j % S);
      ++j;
    }
  };
  CRIA_FN void hand_back() {}
  template <int S, class Fetch, class Consume>
  CRIA_FN void pipeline(Stages<S> s, int n, Fetch fetch, Consume consume) {
    pipeline(s, n, fetch, consume, 0, [](auto&, int, int) {});
  }
  template <int S, class Fetch, class Consume, class Assist>
  CRIA_FN void pipeline(Stages<S>, int n, Fetch fetch, Consume consume, int, Assist assist) {
    static_assert(S >= 2, "pipeline: at least two stages, one to fill while one is used");
    sync();  // stages of an earlier pipeline are free
#pragma unroll
    for (int s = 0; s < S - 1; ++s) {
      if (s < n) fetch(s, s);
      ptx::copy_async_commit();
    }
    Steps<S, Fetch, Assist> steps{*this, fetch, assist, n};
    consume(*this, steps);
  }

  // ---- dot
  template <class L, class A, class B>
  CRIA_FN void dot(Tile<float, L>& acc, A a, B b) {
    using T = typename ElementOf<B>::type;
    if constexpr (requires { a.v; }) {
      dot_mma<K::traits.dot, T, sizeof(T) == 4, B::rows>(acc, RegisterOperand{a}, b);
    } else {
      static_assert(A::rows == L::rows && A::cols == B::rows && B::cols == L::cols,
                    "dot: operand shapes differ: acc is M x N, a is M x K, b is K x N");
      const SharedOperand<A> rows{a, tid() / 32 * 16, warps * 16};
      dot_mma<K::traits.dot, T, false, B::rows>(acc, rows, b);
    }
  }
  template <class L, class A, class B>
  CRIA_FN void dot(Tile<float, L>& acc, A a, B b, Overwrite) {
#pragma unroll
    for (int i = 0; i < L::regs; ++i) acc.v[i] = 0.f;
    dot(acc, a, b);
  }
  template <class... T>
  CRIA_FN void dot_wait(T&...) {}
  template <int N, class... T>
  CRIA_FN void dot_wait(Pending<N>, T&...) {}

  template <class T, class L>
  CRIA_FN Operand<T, L> cast(Type<T>, const Tile<float, L>& t) {
    Operand<T, L> out;
    if constexpr (sizeof(T) == 2) {
#pragma unroll
      for (int i = 0; i < L::regs / 2; ++i) out.v[i] = pack2<T>(t.v[2 * i], t.v[2 * i + 1]);
    } else {
#pragma unroll
      for (int i = 0; i < L::regs; ++i) out.v[i] = __float_as_uint(t.v[i]);
    }
    return out;
  }

  // ---- results go straight from registers to memory here; the staging buffer serves the Hopper
  // lowering
  template <class T, class X, class Staging>
  CRIA_FN void store_tile(Tensor<T> t, int batch, int r0, int c0, const X& tile, const Staging&) {
    this->store(t, map([](float x) { return x; }, tile), r0, c0, batch);
  }

 private:
  template <class X>
  struct ElementOf;
  template <class T, int R, int C>
  struct ElementOf<View<T, R, C>> {
    using type = T;
  };
  template <class V>
  struct ElementOf<Transposed<V>> : ElementOf<V> {};

  template <int N, class T>
  static CRIA_FN void copy_elements(uint32_t to, const T* from, int valid) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const T x = i < valid ? from[i] : T{};
      if constexpr (sizeof(T) == 2)
        ptx::store_shared_16(to + i * 2, x.bits);
      else
        ptx::store_shared_32(to + i * 4, __float_as_uint(x));
    }
  }
  template <int Left>
  CRIA_FN void wait_stages() {
    ptx::copy_async_wait<Left>();
    sync();
  }
};

}  // namespace cuda
}  // namespace cria::tile
