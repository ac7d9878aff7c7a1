// One thread's f32 product, from the library that CMake found.
#pragma once

#include <cstdint>
#include <string>

namespace cria::cpu {

// Row-major C = alpha op(A) op(B) + beta C, all sizes positive. Several threads may call it.
struct Sgemm {
  bool trans_a, trans_b;
  int64_t m, n, k;
  float alpha;
  const float* a;
  int64_t lda;
  const float* b;
  int64_t ldb;
  float beta;
  float* c;
  int64_t ldc;
};

void sgemm(const Sgemm& g);

std::string sgemm_library();  // name and version

}  // namespace cria::cpu
