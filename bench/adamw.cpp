// A step of AdamW over weights held as bf16 and the 16 bits that f32 has beyond it.
#include "bench/claim.h"

namespace cria::claims {

std::vector<Claim> adamw_claims() {
  return {{"AdamW", "adamw", DType::bf16, {{"n", 1 << 28}}, Against::ceiling, 0.90}};
}

}  // namespace cria::claims
