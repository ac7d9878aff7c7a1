// sgemm() where no library was found: right, but several times slower than one.
#include <algorithm>

#include "runtime/cpu/sgemm.h"

namespace cria::cpu {
namespace {

constexpr int64_t kBlockRows = 4;
constexpr int64_t kBlockCols = 64;  // a block of C stays in registers or the first-level cache

// One block of C. The innermost loop runs along a row of B (or a column, when B is transposed).
void multiply_block(const Sgemm& g, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  float sums[kBlockRows][kBlockCols] = {};
  const int64_t a_row = g.trans_a ? 1 : g.lda, a_k = g.trans_a ? g.lda : 1;
  const int64_t b_k = g.trans_b ? 1 : g.ldb, b_col = g.trans_b ? g.ldb : 1;
  for (int64_t k = 0; k < g.k; ++k) {
    const float* b = g.b + k * b_k + col * b_col;
    for (int64_t i = 0; i < rows; ++i) {
      const float a = g.a[(row + i) * a_row + k * a_k];
      for (int64_t j = 0; j < cols; ++j) sums[i][j] += a * b[j * b_col];
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    float* c = g.c + (row + i) * g.ldc + col;
    for (int64_t j = 0; j < cols; ++j) {
      c[j] = g.alpha * sums[i][j] + (g.beta == 0 ? 0.0f : g.beta * c[j]);
    }
  }
}

}  // namespace

void sgemm(const Sgemm& g) {
  for (int64_t row = 0; row < g.m; row += kBlockRows) {
    for (int64_t col = 0; col < g.n; col += kBlockCols) {
      multiply_block(g, row, std::min(kBlockRows, g.m - row), col, std::min(kBlockCols, g.n - col));
    }
  }
}

std::string sgemm_library() { return "plain loops"; }

}  // namespace cria::cpu
