// A claim: how fast a kernel is to be, against what. Each file of this folder states those of one
// kernel; main.cpp measures them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/bench.h"

namespace cria::claims {

enum class Against {
  ceiling,  // at least `target` of the rate of the ceiling
  rival,    // at least `target` times as fast as the best rival
  variant,  // at most `target` times as fast as the kernel called `other`
};

struct Claim {
  std::string what;     // "RMSNorm forward"
  std::string problem;  // as in `cria bench`
  DType dtype = DType::bf16;
  Sizes sizes = {};
  Against against = Against::ceiling;
  double target = 1;
  std::string variant = {};  // the kernel; empty: the only one
  std::string other = {};
  std::function<Ceiling(Device, double bytes)> ceiling = {};  // instead of the problem's own
};

// Those of each file.
std::vector<Claim> rmsnorm_claims();
std::vector<Claim> silu_up_claims();
std::vector<Claim> softmax_claims();
std::vector<Claim> reduction_claims();
std::vector<Claim> transpose_claims();
std::vector<Claim> gemm_claims();
std::vector<Claim> gate_up_claims();
std::vector<Claim> cross_entropy_claims();
std::vector<Claim> adamw_claims();
std::vector<Claim> cpu_attention_claims();

}  // namespace cria::claims
