// Products against the best of the library's algorithms, at the shapes of training steps.
#include "bench/claim.h"

namespace cria::claims {

std::vector<Claim> gemm_claims() {
  auto shape = [](int m, int n, int k, double target) {
    return Claim{"product",      "gemm", DType::bf16, {{"m", m}, {"n", n}, {"k", k}},
                 Against::rival, target};
  };
  return {shape(8192, 8192, 8192, 0.97), shape(8192, 4096, 1024, 0.97),
          shape(8192, 1024, 4096, 0.97), shape(32768, 11264, 2048, 0.97),
          shape(1024, 2048, 512, 0.92),  shape(1024, 512, 2048, 0.92)};
}

}  // namespace cria::claims
