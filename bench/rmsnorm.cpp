// RMSNorm moves little more than a copy does: forward, backward, and fused with the residual
// addition.
#include "bench/claim.h"

namespace cria::claims {

std::vector<Claim> rmsnorm_claims() {
  const Sizes bf16 = {{"rows", 65536}, {"cols", 4096}}, f32 = {{"rows", 65536}, {"cols", 2048}};
  return {{"RMSNorm forward", "rmsnorm", DType::bf16, bf16, Against::ceiling, 0.97},
          {"RMSNorm forward", "rmsnorm", DType::f32, f32, Against::ceiling, 0.97},
          {"RMSNorm backward", "rmsnorm_backward", DType::bf16, bf16, Against::ceiling, 0.90},
          {"RMSNorm backward", "rmsnorm_backward", DType::f32, f32, Against::ceiling, 0.90},
          {"residual + RMSNorm", "add_rmsnorm", DType::bf16, bf16, Against::ceiling, 0.95},
          {"residual + RMSNorm", "add_rmsnorm", DType::f32, f32, Against::ceiling, 0.95}};
}

}  // namespace cria::claims
