// Attention on the CPU against the machine's multiply-adds. On the GPU its rival is cuDNN, which is
// reached through PyTorch: torch/attention.py.
#include "bench/claim.h"

namespace cria::claims {

std::vector<Claim> cpu_attention_claims() {
  const Sizes sizes = {{"batch", 1}, {"heads", 4}, {"seq", 2048}, {"head-dim", 64}};
  return {{"attention, causal", "attention", DType::f32, sizes, Against::ceiling, 0.50}};
}

}  // namespace cria::claims
