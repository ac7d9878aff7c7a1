// The sum of a vector against a hand-written loop that only reads.
#include "bench/claim.h"
#include "bench/read_loop.h"

namespace cria::claims {

std::vector<Claim> reduction_claims() {
  const Sizes n = {{"n", 1 << 29}};
  return {{.what = "sum",
           .problem = "reduction",
           .dtype = DType::f32,
           .sizes = n,
           .target = 0.92,
           .ceiling = read_loop_ceiling},
          {.what = "sum",
           .problem = "reduction",
           .dtype = DType::bf16,
           .sizes = n,
           .target = 0.92,
           .ceiling = read_loop_ceiling}};
}

}  // namespace cria::claims
