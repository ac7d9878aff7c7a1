// How cuBLASLt is opened; none of it needs a GPU.
#include <gtest/gtest.h>

#include <fstream>

#include "runtime/cuda/cublaslt.h"
#include "support/command.h"
#include "support/files.h"
#include "support/places.h"

namespace cria::test {
namespace {

std::string soname() { return "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR); }

TEST(CublasLtFile, WhereThereIsNoneTheReasonSaysWhatToDo) {
  const cuda::OpenedCublasLt opened = cuda::open_cublaslt({});
  EXPECT_EQ(opened.library, nullptr);
  for (const std::string& part :
       {soname() + ",", std::string("set CUDA_HOME"), std::string("pip install nvidia-cublas"),
        std::string("--device cpu")})
    EXPECT_NE(opened.why_not.find(part), std::string::npos) << opened.why_not;
}

TEST(CublasLtFile, IsNoneThatTheProgramCannotStartWithout) {
  const CommandResult needed = run_command("ldd " + quoted(cria_program()));
  if (!needed.ok) GTEST_SKIP() << "ldd is not installed";
  EXPECT_NE(needed.output.find("libc.so"), std::string::npos) << needed.output;
  EXPECT_EQ(needed.output.find("cublas"), std::string::npos) << needed.output;
}

// A file of the name that is no library, and a library that is another one, are left and named.
TEST(CublasLtFile, WhatIsNotCublasLtIsNamedAndLeft) {
  TemporaryFolder folder;
  const std::string text = (folder / soname()).string();
  std::ofstream(text) << "version https://git-lfs.github.com/spec/v1\n";
  const cuda::OpenedCublasLt opened = cuda::open_cublaslt({text, "libm.so.6"});
  EXPECT_EQ(opened.library, nullptr);
  EXPECT_NE(opened.why_not.find("(" + text + " cannot be used"), std::string::npos)
      << opened.why_not;
  EXPECT_NE(opened.why_not.find("(libm.so.6 cannot be used: it has no function cublasLtCreate)"),
            std::string::npos)
      << opened.why_not;
}

TEST(CublasLtFile, TheFirstThatCanBeUsedIsOpened) {
  if (!cuda::why_no_cublaslt().empty()) GTEST_SKIP() << "cuBLASLt is not here";
  int major = 0;
  ASSERT_EQ(cuda::cublaslt().GetProperty(MAJOR_VERSION, &major), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(major, CUBLAS_VER_MAJOR);
}

}  // namespace
}  // namespace cria::test
