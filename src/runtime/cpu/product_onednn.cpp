// sgemm() by oneDNN, for builds of it that use OpenMP or no threads.
#include <oneapi/dnnl/dnnl.h>

#include "base/format.h"
#include "runtime/cpu/sgemm.h"

#if DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP
#include <omp.h>
#endif

namespace cria::cpu {
namespace {

// Keeps oneDNN in the calling thread while the object lives: the pool's workers share out the
// product, and OpenMP's own threads would spin beside them on the same cores.
class OneThread {
 public:
#if DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }

 private:
  int before_;
#endif
};

}  // namespace

void sgemm(const Sgemm& g) {
  [[maybe_unused]] OneThread one_thread;
  dnnl_status_t status = dnnl_sgemm(g.trans_a ? 'T' : 'N', g.trans_b ? 'T' : 'N', g.m, g.n, g.k,
                                    g.alpha, g.a, g.lda, g.b, g.ldb, g.beta, g.c, g.ldc);
  if (status != dnnl_success) {
    fail_f("dnnl_sgemm failed with status {} at {}x{}x{}", static_cast<int>(status), g.m, g.n, g.k);
  }
}

std::string sgemm_library() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace cria::cpu
