// The activation of SwiGLU: two reads to a write, which memory likes better than a copy.
#include "bench/claim.h"

namespace cria::claims {

std::vector<Claim> silu_up_claims() {
  return {{"SiLU * up",
           "silu_up",
           DType::bf16,
           {{"rows", 65536}, {"cols", 5632}},
           Against::ceiling,
           1.0}};
}

}  // namespace cria::claims
