// Where a library of the CUDA toolkit can lie that is opened at run time, on machines with a toolkit, with PyTorch
// or with neither.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace cria {

struct LibrarySearch {
  std::string file;              // "libcublasLt.so.13"
  std::string wheel;             // its folder in PyTorch's wheel before CUDA 13: "cublas"
  int major = 0;                 // of CUDA: from 13 on the wheel's folder is "cu13"
  std::filesystem::path beside;  // the program's folder
  std::string toolkit;  // the folder of the toolkit's libraries that this program was built with
  std::function<const char*(const char*)> variable;  // of the environment, as getenv
};

// What to give dlopen(), in this order: files beside the program or in lib/ there, in CUDA_HOME and CUDA_PATH, the
// bare name, which the loader looks for on its own path, in the toolkit of the build and in /usr/local/cuda, and in
// the wheels of the Python that is here. All but the bare name exist.
std::vector<std::string> library_candidates(const LibrarySearch& search);

}  // namespace cria
