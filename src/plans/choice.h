// Whether plan flash runs a stage by a kernel of cria's own, which does a product and what surrounds
// it at once, or by the library's product and kernels around it. docs/plans/choices.md has what the
// rules were fitted to.
#pragma once

#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "runtime/device.h"

namespace cria {

enum class Stage {
  qkv,               // x [q | k | v]ᵀ, q and k turned
  gate_up,           // silu(x gateᵀ) (x upᵀ), and its backward pass, which wants what it keeps
  linear,            // any other x wᵀ
  linear_dx,         // dy w
  linear_dw,         // dyᵀ x
  weight_gradients,  // all of a block, in one launch: as many rows of width n as its weights have
};
const char* name_of(Stage stage);

// c [m, n] of k terms each, gaps included. Of gate and up, n is the width of one.
struct StageSizes {
  int64_t m, n, k;
  double terms() const { return double(m) * double(n) * double(k); }
  bool operator==(const StageSizes&) const = default;
};

struct Choice {
  Stage stage;
  StageSizes sizes;
  bool own;
  std::string why;
};

// What the rules know of a device.
struct Chooser {
  Backend backend;
  int cores;
  DType dtype;
  int head_dim;

  // The same for the same sizes, heads, element type and device, whatever was tuned: it changes bits.
  Choice choose(Stage stage, StageSizes sizes) const;
};

}  // namespace cria
