#include "runtime/cuda/cublaslt.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "base/format.h"
#include "runtime/library_search.h"

namespace cria::cuda {
namespace {

constexpr int kMajor = CUBLAS_VER_MAJOR;
const std::string kFile = fmt::format("libcublasLt.so.{}", kMajor);

std::vector<std::string> candidates() {
  std::error_code ignored;
  return library_candidates(
      {.file = kFile,
       .wheel = "cublas",
       .major = kMajor,
       .beside = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path(),
       .toolkit = CRIA_CUDA_LIBRARIES,
       .variable = [](const char* name) -> const char* { return std::getenv(name); }});
}

const OpenedCublasLt& opened() {
  static const OpenedCublasLt found = open_cublaslt(candidates());
  return found;
}

// Why a library that could be opened is none for this program; empty if it is.
std::string why_unfit(const CublasLt& library) {
  int major = 0;
  if (library.GetProperty(MAJOR_VERSION, &major) != CUBLAS_STATUS_SUCCESS)
    return "it does not tell its version";
  return major == kMajor ? "" : fmt::format("it is of version {}", major);
}

}  // namespace

CublasLt::Symbol CublasLt::find(const char* name) const {
  void* address = ::dlsym(library_, name);
  if (!address) fail_f("it has no function {}", name);
  return {address};
}

OpenedCublasLt open_cublaslt(const std::vector<std::string>& candidates) {
  std::string refused;  // what was found and why it was left
  for (const std::string& file : candidates) {
    void* handle = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
    std::string why;
    if (handle) {
      try {
        auto library = std::make_unique<const CublasLt>(handle);
        why = why_unfit(*library);
        if (why.empty()) return {std::move(library), ""};
      } catch (const Error& error) {
        why = error.what();
      }
      ::dlclose(handle);
    } else if (file != kFile) {  // the loader's own search is expected to fail
      why = ::dlerror();
    }
    if (!why.empty()) refused += fmt::format(" ({} cannot be used: {})", file, why);
  }
  const std::string package =
      kMajor >= 13 ? "nvidia-cublas" : fmt::format("nvidia-cublas-cu{}", kMajor);
  return {nullptr, fmt::format("{}, NVIDIA's library of matrix products, was not found beside the "
                               "program, in CUDA_HOME, by "
                               "the loader or in PyTorch's wheel{}; set CUDA_HOME to a CUDA {} "
                               "toolkit or run 'pip install "
                               "{}', or use --device cpu",
                               kFile, refused, kMajor, package)};
}

const CublasLt& cublaslt() {
  require(opened().library != nullptr, "cuBLASLt is missing, and why_no_cublaslt() was not asked");
  return *opened().library;
}

const std::string& why_no_cublaslt() { return opened().why_not; }

}  // namespace cria::cuda
