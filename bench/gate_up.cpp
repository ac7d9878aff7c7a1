// Both projections of SwiGLU and its activation in one kernel, against the library's product and an
// activation kernel.
#include "bench/claim.h"

namespace cria::claims {

std::vector<Claim> gate_up_claims() {
  auto shape = [](int m, int ffn, int dim) {
    return Claim{"gate + up + SiLU", "gate_up", DType::bf16, {{"m", m}, {"ffn", ffn}, {"dim", dim}},
                 Against::rival,     1.05};
  };
  return {shape(32768, 5632, 2048), shape(8192, 2816, 1024), shape(1024, 1408, 512)};
}

}  // namespace cria::claims
