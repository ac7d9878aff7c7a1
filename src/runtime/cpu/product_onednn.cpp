// sgemm() by oneDNN, for builds of it that use OpenMP or no threads.
#include <oneapi/dnnl/dnnl.h>
#include <sys/mman.h>

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

// NOTE: while oneDNN 2.6 makes the code of its first product, it writes to memory that it may not
// have got, and dies; some 4 MiB were needed.
bool check_memory() {
  constexpr size_t kBytes = size_t{128} << 20;
  void* memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    fail("oneDNN's products need more memory: raise its limit (ulimit -v), or use smaller sizes");
  ::munmap(memory, kBytes);
  return true;
}

}  // namespace

void sgemm(const Sgemm& g) {
  [[maybe_unused]] static const bool checked = check_memory();
  [[maybe_unused]] OneThread one_thread;
  dnnl_status_t status = dnnl_sgemm(g.trans_a ? 'T' : 'N', g.trans_b ? 'T' : 'N', g.m, g.n, g.k,
                                    g.alpha, g.a, g.lda, g.b, g.ldb, g.beta, g.c, g.ldc);
  if (status == dnnl_out_of_memory)
    fail_f("oneDNN has not enough memory for a product of {}x{}x{}: use smaller sizes", g.m, g.n,
           g.k);
  if (status != dnnl_success) {
    fail_f("dnnl_sgemm failed with status {} at {}x{}x{}", static_cast<int>(status), g.m, g.n, g.k);
  }
}

std::string sgemm_library() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace cria::cpu
