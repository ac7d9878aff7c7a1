// What is built where: the Makefile's choice by the GPU and the CUDA compiler that are here.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/command.h"
#include "support/files.h"

namespace cria::test {
namespace {

namespace fs = std::filesystem;

class BuildChoice : public testing::Test {
 protected:
  void SetUp() override {
    if (!run_command("make --version").ok) GTEST_SKIP() << "make is not installed";
  }

  // A program that says this and no more.
  fs::path program(const fs::path& path, const std::string& says) const {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << "#!/bin/sh\necho '" << says << "'\n";
    fs::permissions(folder_ / path, fs::perms::owner_all);
    return folder_ / path;
  }
  void nvcc(const std::string& version) const {
    program("cuda 12/bin/nvcc", "Cuda compilation tools, release " + version + ", V" + version);
  }
  void gpu(const std::string& compute_capability) const {
    program("smi/nvidia-smi", compute_capability);
  }

  // What make's `words` come to, with CUDA beside PATH and the GPU's tool on it.
  std::string make(const std::string& words) const {
    const CommandResult result =
        run_command("env -i PATH=" + quoted((folder_ / "smi").string()) +
                    ":/usr/bin:/bin CUDA_HOME=" + quoted((folder_ / "cuda 12").string()) +
                    " make -s -C " + quoted(CRIA_SOURCE_DIR) + " --no-print-directory " + words);
    return result.output;
  }
  std::string preset() const { return make("--eval='show: ; @echo $(PRESET)' show"); }

  TemporaryFolder folder_;
};

TEST_F(BuildChoice, NvccIsFoundWhereCudaHomeSays) {
  nvcc("12.6");
  gpu("9.0");
  EXPECT_EQ(make("--eval='show: ; @echo \"$(NVCC)\"' show"),
            (folder_ / "cuda 12/bin/nvcc").string() + "\n");
  EXPECT_EQ(preset(), "gpu\n");
}

}  // namespace
}  // namespace cria::test
