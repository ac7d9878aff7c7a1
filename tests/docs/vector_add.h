// The first kernel of docs/tile.md. Text between "// [name]" and "// [end]" is quoted there.
// [vector_add]
// z = x + y
#pragma once

#include "kernels/list.h"

namespace cria::docs {

using namespace kernels;

template <class T>
struct VectorAddArgs {
  using Element = T;
  static constexpr const char* kernel = "vector_add";
  Tensor<const T> x;  // [N]
  Tensor<const T> y;  // [N]
  Tensor<T> z;        // [N]

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("y", y), visit("z", z);
  }
  Dims dims() const { return {{"n", z.cols}}; }
  Cost cost() const {
    return {.flops = double(z.size()),
            .bytes_read = double(x.bytes() + y.bytes()),
            .bytes_written = double(z.bytes())};
  }
};

template <int Block, int Threads>
struct BlockConfig {
  static constexpr int block = Block, threads = Threads;
  static std::string name() {
    return "block" + std::to_string(block) + "_threads" + std::to_string(threads);
  }
};

template <class T, class C>
struct VectorAdd {
  using Element = T;
  using Config = C;
  using Args = VectorAddArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return {ceil_div(a.z.cols, C::block)}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    auto i = p.arange(shape<C::block>) + p.program_id(0) * C::block;
    auto inside = i < a.z.cols;
    auto x = p.load(a.x.data, i, inside);
    auto y = p.load(a.y.data, i, inside);
    p.store(a.z.data, i, x + y, inside);
  }
};

template <class T>
using VectorAddKernels =
    KernelList<KernelSpace<VectorAdd, T, BlockConfig<1024, 128>, BlockConfig<4096, 256>>>;

}  // namespace cria::docs
// [end]
