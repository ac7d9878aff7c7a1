// cuBLASLt, opened when it is first needed and not linked: it is half a gigabyte, most GPU machines have one already,
// and who stays on the CPU needs none. Types are the toolkit's, and its header must be of the library's major version.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>
#include <vector>

namespace cria::cuda {

// The functions that cria calls, by the names that follow cublasLt in C.
class CublasLt {
  void* library_;

  struct Symbol {
    void* address;
    template <class F>
    operator F*() const {
      return reinterpret_cast<F*>(address);
    }
  };
  Symbol find(const char* name) const;  // an Error if there is no such

 public:
  explicit CublasLt(void* library) : library_(library) {}  // a handle of dlopen's

#define CRIA_CUBLASLT(name) decltype(&::cublasLt##name) name = find("cublasLt" #name)
  CRIA_CUBLASLT(Create);
  CRIA_CUBLASLT(GetProperty);
  CRIA_CUBLASLT(GetStatusName);
  CRIA_CUBLASLT(GetStatusString);
  CRIA_CUBLASLT(Matmul);
  CRIA_CUBLASLT(MatmulAlgoConfigGetAttribute);
  CRIA_CUBLASLT(MatmulAlgoGetHeuristic);
  CRIA_CUBLASLT(MatmulDescCreate);
  CRIA_CUBLASLT(MatmulDescDestroy);
  CRIA_CUBLASLT(MatmulDescSetAttribute);
  CRIA_CUBLASLT(MatmulPreferenceCreate);
  CRIA_CUBLASLT(MatmulPreferenceDestroy);
  CRIA_CUBLASLT(MatmulPreferenceSetAttribute);
  CRIA_CUBLASLT(MatrixLayoutCreate);
  CRIA_CUBLASLT(MatrixLayoutDestroy);
  CRIA_CUBLASLT(MatrixLayoutSetAttribute);
  CRIA_CUBLASLT(MatrixTransform);
  CRIA_CUBLASLT(MatrixTransformDescCreate);
  CRIA_CUBLASLT(MatrixTransformDescDestroy);
  CRIA_CUBLASLT(MatrixTransformDescSetAttribute);
#undef CRIA_CUBLASLT
};

struct OpenedCublasLt {
  std::unique_ptr<const CublasLt> library;  // null if there is none that can be used
  std::string why_not;                      // and what to do about it, as the end of a sentence
};

// The first of these files that is cuBLASLt of the header's major version.
OpenedCublasLt open_cublaslt(const std::vector<std::string>& candidates);

// Why this process has none and what to do about it, as the end of a sentence; empty if it has. Looked for once.
const std::string& why_no_cublaslt();
// The library, if it has one.
const CublasLt& cublaslt();

}  // namespace cria::cuda
