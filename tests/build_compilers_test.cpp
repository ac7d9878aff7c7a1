// What g++ builds for this machine, clang++ 16 and newer read as well, and g++ for any x86-64, without a warning: kernels
// with the headers of the CPU's target and of the tracer's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/command.h"
#include "support/files.h"
#include "support/places.h"

namespace cria::test {
namespace {

class Compilers : public WithSources {
 protected:
  // A stub as cria_kernels() writes it.
  void expect_no_warning(const std::string& compiler, const std::string& kernel,
                         const std::string& list, const std::string& target) const {
    const std::filesystem::path stub = folder_ / (kernel + "_" + target + ".cpp");
    std::ofstream(stub) << "#include \"kernels/" << kernel << ".h\"\n#include \"kernels/bind/"
                        << target << ".h\"\n#include \"kernels/instantiate.h\"\n"
                        << "void add(cria::KernelRegistry& registry);\n"
                        << "void add(cria::KernelRegistry& registry) {\n"
                        << "  cria::kernels::instantiate<cria::kernels::" << list
                        << "<float>>(registry);\n}\n";
    const std::string macro = target == "cpu" ? "CPU" : "TRACE";
    const CommandResult result = run_command(fmt::format(
        "{} -std=c++20 -Wall -Wextra -Wno-unknown-pragmas -Werror -DCRIA_TARGET_{}=1 -I{} {}",
        compiler, macro, quoted(in_repository("src").string()), quoted(stub.string())));
    EXPECT_TRUE(result.ok) << compiler << ": " << result.output;
  }

  TemporaryFolder folder_;
};

// The newest there is; empty when none is new enough.
std::string clang() {
  for (int version = 30; version >= 16; --version) {
    const std::string name = fmt::format("clang++-{}", version);
    if (run_command(name + " --version").ok) return name;
  }
  return run_command("clang++ --version | grep -E 'version (1[6-9]|[2-9][0-9])\\.'").ok ? "clang++"
                                                                                        : "";
}

TEST_F(Compilers, ClangReadsKernelsOfEveryTarget) {
  const std::string compiler = clang();
  if (compiler.empty()) GTEST_SKIP() << "clang++ 16 or newer is not installed";
  const std::string command = compiler + " -fsyntax-only -march=native";
  expect_no_warning(command, "transpose", "TransposeKernels", "cpu");
  expect_no_warning(command, "gemm", "GemmKernels", "cpu");
  expect_no_warning(command, "transpose", "TransposeKernels", "trace");
}

// As the portable build compiles the tracer's. g++ 12 saw values without a first one here.
TEST_F(Compilers, GccForAnyMachineSeesNothingToWarnOf) {
  const std::string command =
      "g++ -O1 -c -march=x86-64-v2 -o " + quoted((folder_ / "kernel.o").string());
  if (!run_command(command + " -x c++ - </dev/null").ok)
    GTEST_SKIP() << "there is no g++ for x86-64";
  expect_no_warning(command, "gemm", "GemmKernels", "trace");
}

}  // namespace
}  // namespace cria::test
