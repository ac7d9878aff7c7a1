// The transpose ladder: the top rung close to a copy, every rung below it slower than the next.
#include "bench/claim.h"

namespace cria::claims {

std::vector<Claim> transpose_claims() {
  const Sizes sizes = {{"rows", 16384}, {"cols", 8192}};
  auto rung = [&](const char* name, const char* next) {
    return Claim{.what = std::string("transpose ") + name,
                 .problem = "transpose",
                 .dtype = DType::f32,
                 .sizes = sizes,
                 .against = Against::variant,
                 .target = 0.95,
                 .variant = name,
                 .other = next};
  };
  return {{.what = "transpose padded",
           .problem = "transpose",
           .dtype = DType::f32,
           .sizes = sizes,
           .target = 0.96,
           .variant = "padded"},
          rung("tiled", "padded"),
          rung("coalesced_loads", "tiled"),
          rung("row_wise", "coalesced_loads")};
}

}  // namespace cria::claims
