// cria_bench takes bad input as cria does.
#include "cli/cli.h"

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

}  // namespace
}  // namespace cria::test
