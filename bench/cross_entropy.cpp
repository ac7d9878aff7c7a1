// Cross-entropy with its gradient in place of the logits, at a model's usual vocabulary.
#include "bench/claim.h"

namespace cria::claims {

std::vector<Claim> cross_entropy_claims() {
  return {{"cross-entropy",
           "cross_entropy",
           DType::bf16,
           {{"rows", 8192}, {"vocab", 32000}},
           Against::ceiling,
           0.90}};
}

}  // namespace cria::claims
