// z = x + y: the smallest kernel.
#pragma once

#include "kernels/config.h"
#include "kernels/list.h"

namespace cria::kernels {

template <class T>
struct VectorAddArgs {
  using Element = T;
  static constexpr const char* kernel = "vector_add";
  Tensor<const T> x;  // [N]
  Tensor<const T> y;  // [N]
  Tensor<T> z;        // [N], may be x or y

  template <class V>
  constexpr void operands(V&& visit) {
    visit("x", x), visit("y", y), visit("z", z);
  }
  Dims dims() const { return {{"n", x.cols}}; }
  Cost cost() const {
    return {.flops = double(x.size()),
            .bytes_read = double(x.bytes() + y.bytes()),
            .bytes_written = double(z.bytes())};
  }
};

template <class T, class C>
struct VectorAdd {
  using Element = T;
  using Config = C;
  using Args = VectorAddArgs<T>;
  static constexpr Traits traits{.threads = C::threads};
  static Grid grid(const Args& a) { return {ceil_div(a.x.cols, C::cols)}; }

  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int64_t start = int64_t{p.program_id(0)} * C::cols;
    auto i = p.arange(shape<C::cols>) + start;
    auto x = p.load(a.x.data, i, i < a.x.cols);
    auto y = p.load(a.y.data, i, i < a.x.cols);
    p.store(a.z.data, i, x + y, i < a.x.cols);
  }
};

template <class T>
using VectorAddKernels = KernelList<KernelSpace<VectorAdd, T, BlockConfig<2048, 256>,
                                                BlockConfig<4096, 256>, BlockConfig<1024, 128>>>;

}  // namespace cria::kernels
