#include "kernels/embedding.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/format.h"

namespace cria::kernels {

void sort_tokens(std::span<const int32_t> tokens, std::span<int32_t> order,
                 std::span<int32_t> starts, std::span<int32_t> ids) {
  const size_t rows = tokens.size();
  require(order.size() == rows && starts.size() == rows + 1 && ids.size() == rows,
          "sort_tokens: for R tokens, order and ids hold R numbers and starts R + 1");
  std::fill(starts.begin(), starts.end(), static_cast<int32_t>(rows));
  if (rows == 0) return;
  const auto [least, most] = std::minmax_element(tokens.begin(), tokens.end());
  if (*least < 0)
    fail_f("sort_tokens: token {} at position {} is negative: check the data", *least,
           least - tokens.begin());
  std::vector<int32_t> next(size_t(*most) + 2);  // counts, then where each token's next row goes
  for (const int32_t token : tokens) ++next[token + 1];
  size_t distinct = 0;
  for (int32_t token = 0; token <= *most; ++token) {
    if (next[token + 1] > 0) {
      ids[distinct] = token;
      starts[distinct++] = next[token];
    }
    next[token + 1] += next[token];
  }
  for (size_t r = 0; r < rows; ++r) order[next[tokens[r]]++] = static_cast<int32_t>(r);
}

}  // namespace cria::kernels
