// What is built where: the choices of the Makefile and of CMake by the GPU and the CUDA compiler
// that are here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

#include "support/command.h"
#include "support/files.h"
#include "support/places.h"

namespace cria::test {
namespace {

namespace fs = std::filesystem;

class BuildChoice : public WithSources {
 protected:
  void SetUp() override {
    WithSources::SetUp();
    if (IsSkipped()) return;
    if (!run_command("make --version").ok) GTEST_SKIP() << "make is not installed";
    // This machine's own GPU is hidden: nvidia-smi says what it says without one.
    program("smi/nvidia-smi", "NVIDIA-SMI has failed: no devices were found", 9);
  }

  // A program that says this and no more.
  fs::path program(const fs::path& path, const std::string& says, int exit_code = 0) const {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << "#!/bin/sh\necho '" << says << "'\nexit " << exit_code << "\n";
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
    const CommandResult result = run_command(
        "env -i PATH=" + quoted((folder_ / "smi").string()) +
        ":/usr/bin:/bin CUDA_HOME=" + quoted((folder_ / "cuda 12").string()) + " make -s -C " +
        quoted(in_repository("").string()) + " --no-print-directory " + words);
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

TEST_F(BuildChoice, AnOldNvccMeansTheCpu) {
  gpu("9.0");
  for (const char* version : {"11.8", "12.4"}) {
    nvcc(version);
    EXPECT_EQ(preset(), "cpu\n") << version;
    const std::string said = make("gpu-check");
    EXPECT_NE(said.find(std::string("CUDA ") + version + ", and cria needs 12.5 or newer"),
              std::string::npos)
        << said;
  }
  for (const char* version : {"12.5", "12.10", "13.0"}) {
    nvcc(version);
    EXPECT_EQ(preset(), "gpu\n") << version;
    EXPECT_EQ(make("gpu-check"), "") << version;
  }
}

TEST_F(BuildChoice, AnOldGpuMeansTheCpu) {
  nvcc("12.6");
  EXPECT_EQ(preset(), "cpu\n");  // no GPU at all
  gpu("7.5");
  EXPECT_EQ(preset(), "cpu\n");
  const std::string said = make("gpu-check");
  EXPECT_NE(said.find("below 8.0"), std::string::npos) << said;
  for (const char* newer : {"8.0", "8.9", "10.0", "12.0"}) {
    gpu(newer);
    EXPECT_EQ(preset(), "gpu\n") << newer;
  }
}

TEST_F(BuildChoice, CMakeRefusesAnOldNvccInOneSentence) {
  nvcc("12.4");
  const auto cmake = [&](const std::string& wanted) {
    return run_command(fmt::format("cmake -DCRIA_CUDA={} -DCMAKE_CUDA_COMPILER={} -P {}", wanted,
                                   quoted((folder_ / "cuda 12/bin/nvcc").string()),
                                   quoted(in_repository("cmake/cuda.cmake").string())));
  };
  const std::string why = "is of CUDA 12.4, and cria needs 12.5 or newer";
  const CommandResult automatic = cmake("AUTO"), on = cmake("ON"), off = cmake("OFF");
  EXPECT_TRUE(automatic.ok) << automatic.output;
  EXPECT_NE(automatic.output.find(why), std::string::npos) << automatic.output;
  EXPECT_EQ(std::count(automatic.output.begin(), automatic.output.end(), '\n'), 1)
      << automatic.output;
  EXPECT_FALSE(on.ok);
  // CMake breaks lines where it likes.
  EXPECT_NE(on.output.find("-DCRIA_CUDA=OFF"), std::string::npos) << on.output;
  EXPECT_TRUE(off.ok);
  EXPECT_EQ(off.output, "");
}

// In a folder of its own; CMake breaks lines where it likes.
std::string configured_with(const std::string& option) {
  const TemporaryFolder folder;
  const CommandResult result =
      run_command(fmt::format("cmake -S {} -B {} {}", quoted(in_repository("").string()),
                              quoted(folder.path().string()), quoted(option)));
  EXPECT_FALSE(result.ok) << option;
  return std::regex_replace(result.output, std::regex("\\s+"), " ");
}

TEST_F(BuildChoice, CMakeRefusesMisspeltOptionsInOneSentence) {
  for (const auto& [option, sentence] : std::map<std::string, std::string>{
           {"-DCRIA_CUDA=of", "CRIA_CUDA=of is none of its values: AUTO, ON, OFF."},
           {"-DCRIA_CPU_PRODUCT=onedn",
            "CRIA_CPU_PRODUCT=onedn is none of its values: AUTO, onednn, openblas, loop."},
           {"-DCRIA_DTYPES=f32;fp16",
            "CRIA_DTYPES has fp16, and the memory types are f32, bf16 and f16."}}) {
    const std::string said = configured_with(option);
    EXPECT_NE(said.find(sentence), std::string::npos) << said;
  }
}

TEST_F(BuildChoice, CMakeRefusesAnOldCompilerInOneSentence) {
  const std::string said =
      configured_with("-DCRIA_COMPILER_FITS=OFF");  // what the check would find
  EXPECT_NE(said.find("cannot compile cria: name g++ 12, clang++ 16 or newer"), std::string::npos)
      << said;
}

TEST_F(BuildChoice, MakeRefusesAnOldCMakeInOneSentence) {
  const auto configure = [&](const std::string& version) {
    program("smi/cmake", "cmake version " + version);
    return make("--eval='show: ; @$(call configure,cpu)' show 2>&1");
  };
  for (const char* version : {"3.9.6", "3.18.4", "3.24.4"}) {
    const std::string said = configure(version);
    EXPECT_NE(said.find(std::string("cmake ") + version + " is too old, and cria needs 3.25"),
              std::string::npos)
        << said;
  }
  for (const char* version : {"3.25.1", "3.31.6", "4.0.0"})
    EXPECT_EQ(configure(version), "") << version;
}

}  // namespace
}  // namespace cria::test
