// Products by cuBLASLt. It is column-major, so it is asked for the transpose, C' = op(B)' op(A)':
// a row-major matrix read as column-major is its own transpose, and nothing has to move.
#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <mutex>

#include "base/format.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/device.h"
#include "runtime/product_backend.h"

namespace cria::cuda {
namespace {

constexpr size_t kWorkspaceBytes = 32 << 20;  // what NVIDIA advises for Hopper, the largest
constexpr int kMaxAlgorithms = 8;
constexpr uint32_t kMaxAlignment = 256;  // cudaMalloc's

// The largest power of two, up to 256, that a pointer is a multiple of.
uint32_t alignment_of(const void* pointer) {
  auto address = reinterpret_cast<uintptr_t>(pointer);
  return 1u << std::min(std::countr_zero(address), std::countr_zero(kMaxAlignment));
}

struct Alignments {
  uint32_t a = kMaxAlignment, b = kMaxAlignment, c = kMaxAlignment;
};

cudaDataType_t type_of(DType type) {
  switch (type) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    case DType::i32:
      break;
  }
  fail_f("cuBLASLt products do not take {} elements", name_of(type));
}

template <class T>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t which, T value) {
  check(cublaslt().MatmulDescSetAttribute(description, which, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
}
template <class T>
void set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t which, T value) {
  check(cublaslt().MatrixLayoutSetAttribute(layout, which, &value, sizeof(value)),
        "cublasLtMatrixLayoutSetAttribute");
}
template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t which,
         T value) {
  check(cublaslt().MatmulPreferenceSetAttribute(preference, which, &value, sizeof(value)),
        "cublasLtMatmulPreferenceSetAttribute");
}

struct Release {
  void operator()(cublasLtMatmulDescOpaque_t* p) const { cublaslt().MatmulDescDestroy(p); }
  void operator()(cublasLtMatrixLayoutOpaque_t* p) const { cublaslt().MatrixLayoutDestroy(p); }
  void operator()(cublasLtMatmulPreferenceOpaque_t* p) const {
    cublaslt().MatmulPreferenceDestroy(p);
  }
};
using Description = std::unique_ptr<cublasLtMatmulDescOpaque_t, Release>;
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Release>;
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, Release>;

Description make_description(const Product& p) {
  cublasLtMatmulDesc_t made = nullptr;
  cublasComputeType_t compute =
      p.precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  check(cublaslt().MatmulDescCreate(&made, compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
  Description description(made);
  auto operation = [](bool trans) { return trans ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(made, CUBLASLT_MATMUL_DESC_TRANSA, operation(p.trans_b));
  set(made, CUBLASLT_MATMUL_DESC_TRANSB, operation(p.trans_a));
  return description;
}

// A row-major matrix of `rows` x `cols`, told as the column-major `cols` x `rows` that it also is.
Layout make_layout(DType type, int64_t rows, int64_t cols, int64_t ld, int batch, int64_t stride) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublaslt().MatrixLayoutCreate(&made, type_of(type), cols, rows, ld),
        "cublasLtMatrixLayoutCreate");
  Layout layout(made);
  set(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t{batch});
  set(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t{stride});
  return layout;
}

Preference make_preference(const Alignments& aligned) {
  cublasLtMatmulPreference_t made = nullptr;
  check(cublaslt().MatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  Preference preference(made);
  set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kWorkspaceBytes});
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned.b);
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned.a);
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, aligned.c);
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, aligned.c);
  return preference;
}

// All that cuBLASLt needs to know of a product besides pointers and factors. The operands are named
// as in Product; cuBLASLt gets them in the other order.
struct Plan {
  Description description;
  Layout a, b, c;
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms;
};

Plan make_plan(cublasLtHandle_t handle, const Product& p, const Alignments& aligned) {
  Plan plan;
  plan.description = make_description(p);
  plan.a =
      make_layout(p.in, p.trans_a ? p.k : p.m, p.trans_a ? p.m : p.k, p.lda, p.batch, p.stride_a);
  plan.b =
      make_layout(p.in, p.trans_b ? p.n : p.k, p.trans_b ? p.k : p.n, p.ldb, p.batch, p.stride_b);
  plan.c = make_layout(p.out, p.m, p.n, p.ldc, p.batch, p.stride_c);

  std::array<cublasLtMatmulHeuristicResult_t, kMaxAlgorithms> found{};
  int count = 0;
  cublasStatus_t status = cublaslt().MatmulAlgoGetHeuristic(
      handle, plan.description.get(), plan.b.get(), plan.a.get(), plan.c.get(), plan.c.get(),
      make_preference(aligned).get(), kMaxAlgorithms, found.data(), &count);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status, "cublasLtMatmulAlgoGetHeuristic");
  for (int i = 0; i < count; ++i) {
    if (found[i].state == CUBLAS_STATUS_SUCCESS) plan.algorithms.push_back(found[i]);
  }
  if (plan.algorithms.empty()) {
    fail_f(
        "cuBLASLt has no algorithm for the product {}: pad its leading dimensions to a multiple "
        "of 8",
        describe(p));
  }
  return plan;
}

// The library on one device, with the plans of all products seen.
class Library {
 public:
  Library() { check(cublaslt().Create(&handle_), "cublasLtCreate"); }

  cublasLtHandle_t handle() const { return handle_; }

  // Plans stay where they are once made, so the reference outlives the lock.
  const Plan& plan(const Product& p, const Alignments& aligned) {
    Key key = {p.m,        p.n,        p.k,       p.trans_a, p.trans_b, int(p.in),
               int(p.out), p.lda,      p.ldb,     p.ldc,     p.batch,   p.stride_a,
               p.stride_b, p.stride_c, aligned.a, aligned.b, aligned.c, int(p.precision)};
    std::lock_guard lock(mutex_);
    auto found = plans_.find(key);
    if (found == plans_.end()) {
      found = plans_.emplace(key, make_plan(handle_, p, aligned)).first;
    }
    return found->second;
  }

 private:
  using Key = std::array<int64_t, 18>;

  cublasLtHandle_t handle_ = nullptr;
  std::mutex mutex_;
  std::map<Key, Plan> plans_;
};

// Never destroyed: at the end of the process CUDA may be gone already.
Library& library_of(int index) {
  static std::mutex mutex;
  static auto& libraries = *new std::map<int, Library>;
  std::lock_guard lock(mutex);
  make_current({Backend::cuda, index});
  return libraries[index];
}

int config_of(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t which) {
  // Some attributes have 16 bits only; the rest stays 0.
  int value = 0;
  size_t written = 0;
  bool wide = cublaslt().MatmulAlgoConfigGetAttribute(&algorithm, which, &value, sizeof(value),
                                                      &written) == CUBLAS_STATUS_SUCCESS;
  if (!wide) {
    uint16_t narrow = 0;
    check(cublaslt().MatmulAlgoConfigGetAttribute(&algorithm, which, &narrow, sizeof(narrow),
                                                  &written),
          "cublasLtMatmulAlgoConfigGetAttribute");
    value = narrow;
  }
  return value;
}

std::string describe_algorithm(const cublasLtMatmulAlgo_t& algorithm) {
  return fmt::format("id {} tile {} stages {} split-k {} cluster {}",
                     config_of(algorithm, CUBLASLT_ALGO_CONFIG_ID),
                     config_of(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID),
                     config_of(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID),
                     config_of(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
                     config_of(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID));
}

}  // namespace

void multiply(Stream& stream, const Product& p, const void* a, const void* b, void* c,
              int algorithm, const void* addend) {
  Library& library = library_of(stream.device().index);
  const Plan& plan = library.plan(
      p, {alignment_of(a), alignment_of(b), std::min(alignment_of(c), alignment_of(addend))});
  int count = static_cast<int>(plan.algorithms.size());
  if (algorithm < 0 || algorithm >= count) {
    fail_f("there is no algorithm {} for the product {}: cuBLASLt offers 0 to {}", algorithm,
           describe(p), count - 1);
  }
  check(cublaslt().Matmul(library.handle(), plan.description.get(), &p.alpha, b, plan.b.get(), a,
                          plan.a.get(), &p.beta, addend, plan.c.get(), c, plan.c.get(),
                          &plan.algorithms[algorithm].algo, stream.workspace(kWorkspaceBytes),
                          kWorkspaceBytes, static_cast<cudaStream_t>(stream.native())),
        "cublasLtMatmul");
}

std::vector<std::string> product_algorithms(int index, const Product& p) {
  std::vector<std::string> descriptions;
  for (const auto& result : library_of(index).plan(p, {}).algorithms) {
    descriptions.push_back(describe_algorithm(result.algo));
  }
  return descriptions;
}

std::string why_no_products() { return why_no_cublaslt(); }

std::string product_library(int) {
  if (!why_no_cublaslt().empty()) return "none";
  int major = 0, minor = 0, patch = 0;
  check(cublaslt().GetProperty(MAJOR_VERSION, &major), "cublasLtGetProperty");
  check(cublaslt().GetProperty(MINOR_VERSION, &minor), "cublasLtGetProperty");
  check(cublaslt().GetProperty(PATCH_LEVEL, &patch), "cublasLtGetProperty");
  return fmt::format("cuBLASLt {}.{}.{}", major, minor, patch);
}

}  // namespace cria::cuda
