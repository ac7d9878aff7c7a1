// sgemm() by OpenBLAS.
#include <cblas.h>

#include <string_view>

#include "runtime/cpu/sgemm.h"

namespace cria::cpu {

void sgemm(const Sgemm& g) {
  // The pool's workers share out the product; OpenBLAS' own threads would fight them for the cores.
  static const bool one_thread = (openblas_set_num_threads(1), true);
  static_cast<void>(one_thread);
  cblas_sgemm(CblasRowMajor, g.trans_a ? CblasTrans : CblasNoTrans,
              g.trans_b ? CblasTrans : CblasNoTrans, static_cast<blasint>(g.m),
              static_cast<blasint>(g.n), static_cast<blasint>(g.k), g.alpha, g.a,
              static_cast<blasint>(g.lda), g.b, static_cast<blasint>(g.ldb), g.beta, g.c,
              static_cast<blasint>(g.ldc));
}

// The configuration string starts with "OpenBLAS 0.3.21 " and goes on with build options.
std::string sgemm_library() {
  std::string_view config = openblas_get_config();
  size_t name_end = config.find(' ');
  return std::string(config.substr(0, config.find(' ', name_end + 1)));
}

}  // namespace cria::cpu
