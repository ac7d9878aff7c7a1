#include "plans/choice.h"

#include "base/error.h"
#include "kernels/rope.h"

namespace cria {
namespace {

// Cria's plain products begin under the end of the kernel before them, which is what counts for small
// ones. Large ones are limited by power, and the library's need less of it.
constexpr double kLargeProduct = double(int64_t{1} << 32);

}  // namespace

const char* name_of(Stage stage) {
  switch (stage) {
    case Stage::qkv:
      return "qkv";
    case Stage::gate_up:
      return "gate_up";
    case Stage::product:
      return "product";
    case Stage::weight_gradients:
      return "weight_gradients";
  }
  fail("there is no such stage of a plan");
}

Choice choose(Stage stage, StageSizes sizes, DType dtype, Device device, int head_dim) {
  const auto own = [&](const char* why) { return Choice{stage, sizes, true, why}; };
  const auto library = [&](const char* why) { return Choice{stage, sizes, false, why}; };
  if (device.backend != Backend::cuda)
    return library("on a CPU the library multiplies, and other kernels stay in its cache");
  if (size_of(dtype) != 2)
    return library("cria's kernels for tensor cores are for 16-bit elements");
  switch (stage) {
    case Stage::qkv:
      return kernels::can_fuse_rope(head_dim) ? own("turns queries and keys where they are made")
                                              : library("heads of 64 or 128 can be turned there");
    case Stage::gate_up:
      return own("never puts both products into memory");
    case Stage::product:
    case Stage::weight_gradients:
      return sizes.terms() < kLargeProduct
                 ? own("small: begins under the end of the kernel before it")
                 : library("large: limited by power, of which the library's needs less");
  }
  fail("there is no such stage of a plan");
}

}  // namespace cria
