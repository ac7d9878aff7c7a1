// Where tests find the programs and the files they use: in a build folder and the repository that it was built from,
// or in a bundle, which holds the files that tests read, at the same paths, but no sources.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace cria::test {

inline std::filesystem::path program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

// The programs `cria` and `cria_bench`.
inline std::string cria_program() { return (program_folder() / "cria").string(); }
inline std::string bench_program() { return (program_folder() / "cria_bench").string(); }

// A file or folder of the repository, or of the bundle where the repository is not here.
inline std::filesystem::path in_repository(const std::string& path) {
  static const bool here = std::filesystem::exists(CRIA_SOURCE_DIR);
  return (here ? std::filesystem::path(CRIA_SOURCE_DIR) : program_folder()) / path;
}

// Tests of the sources, of the pages, and of what compilers and make do with them.
class WithSources : public testing::Test {
 protected:
  void SetUp() override {
    if (!exists(in_repository("src"))) GTEST_SKIP() << "the sources are not here: this is a bundle";
  }
};

}  // namespace cria::test
