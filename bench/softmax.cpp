// Softmax of rows that fit in registers.
#include "bench/claim.h"

namespace cria::claims {

std::vector<Claim> softmax_claims() {
  return {{"softmax",
           "softmax",
           DType::bf16,
           {{"rows", 65536}, {"cols", 4096}},
           Against::ceiling,
           0.95}};
}

}  // namespace cria::claims
