// cria_bench takes bad input as cria does, and bench/sizes understands what cria writes.
#include "cli/cli.h"
#include "support/command.h"

namespace cria::test {
namespace {

class BenchProgram : public Cli {
 protected:
  BenchProgram() { program_ = bench_program(); }
};

TEST_F(BenchProgram, BadInputGetsOneSentence) {
  expect_refused("", "cria_bench: a command is missing; 'cria_bench --help'");
  expect_refused("clams", "did you mean claims?");
  expect_refused("claims --device cpu --second 1",
                 "cria_bench: not expected: --second 1; did you mean --seconds? "
                 "'cria_bench claims --help'");
  expect_refused("claims --device cpu --seconds -1", "--seconds");
  expect_refused("claims --device cpu --only atention", "did you mean attention?");
  expect_refused("claims --device cpu --json " + file("nowhere/x.json"), "cannot write");
  expect_refused("growth --device cpu --plans flahs", "did you mean flash?");
  expect_refused("growth --device cpu --doublings -1", "--doublings");
  expect_refused("growth --device cpu --json " + file("nowhere/x.json"), "cannot write");
  expect_refused("decode --device cpu --layers 0", "--layers");
  expect_refused("decode --device cpu --json " + file("nowhere/x.json"), "cannot write");
  expect_refused("launch rmsnrm --device cpu", "did you mean rmsnorm?");
  expect_refused("launch rmsnorm --device cpu --config none", "no configuration 'none'");
  expect_refused("pace", "KERNEL");
}

TEST_F(BenchProgram, OutputThatIsLostIsAnError) {
  const int status = std::system(
      (program_ + " launch rmsnorm --rows 8 --cols 64 --device cpu > /dev/full 2> " + file("err"))
          .c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_NE(read_text(file("err")).find("the output could not be written"), std::string::npos);
}

// The figures are this machine's, so claims may be missed; the status says whether they were.
TEST_F(BenchProgram, SizesAreMeasuredWithCria) {
  if (!run_command("python3 --version").ok) GTEST_SKIP() << "there is no python3";
  const std::string output =
      run_command(quoted(in_repository("bench/sizes").string()) + " " + quoted(cria_program()) +
                  " --device cpu --steps 5 --count 0 --also 20,1,2,1,6,10,30,1,9 "
                  "--also 16,1,2,2,8,12,40,2,5; echo status $?")
          .output;
  const bool missed = output.find("MISSED by") != std::string::npos;
  for (const char* part :
       {"2 sizes on cpu", "1 f32  20, 1, 2 on 1 x 6, 10, 30, 1 x 9", "2 of 2 measured in",
        "flash at most 1.10 of baseline: ", "neighbour: ", missed ? "status 1" : "status 0"})
    EXPECT_NE(output.find(part), std::string::npos) << "no \"" << part << "\" in: " << output;
  EXPECT_EQ(output.find("FAILED"), std::string::npos) << output;
}

}  // namespace
}  // namespace cria::test
