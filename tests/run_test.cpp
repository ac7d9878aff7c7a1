// tests/run shows what happened in a run of tests: failures with what they printed, reasons of skipped tests.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/command.h"
#include "support/files.h"
#include "support/places.h"

namespace cria::test {
namespace {

namespace fs = std::filesystem;

const std::string kRun = in_repository("tests/run").string();

// A program that prints what GoogleTest prints of these tests, and how it ends.
class Runner : public testing::Test {
 protected:
  CommandResult run(int processes, const std::string& tests) const {
    const fs::path program = folder_ / "tests";
    std::ofstream(program) << "#!/bin/sh\necho 'Running main() from gtest_main.cc'\n"
                              "echo '[==========] Running 2 tests from 1 test suite.'\n"
                           << tests;
    fs::permissions(program, fs::perms::owner_all);
    return run_command(words_of({kRun, std::to_string(processes), program.string()}));
  }
  static std::string words_of(std::initializer_list<std::string> words) {
    std::string out;
    for (const std::string& word : words) out += quoted(word) + " ";
    return out;
  }

  TemporaryFolder folder_;
};

const std::string kPasses =
    "echo '[ RUN      ] A.Passes'; printf 'said without an end'; echo '[       OK ] A.Passes (3 "
    "ms)'\n";
const std::string kSkips =
    "echo '[ RUN      ] A.Skips'; printf 'a.cpp:3: Skipped\\nno GPU here\\n\\n'; "
    "echo '[  SKIPPED ] A.Skips (0 ms)'\n";
const std::string kFails =
    "echo '[ RUN      ] A.Fails/1'; printf 'a.cpp:9: Failure\\n1 is not 2\\n'; "
    "printf '[  FAILED  ] A.Fails/1, where GetParam() = 7\\nof two lines (0 ms)\\n'\n";

TEST_F(Runner, SkippedTestsAreCountedByReason) {
  const CommandResult result = run(2, kPasses + kSkips);
  EXPECT_TRUE(result.ok);
  EXPECT_EQ(result.output.substr(0, result.output.find(", in ")),
            "Skipped, by reason:\n     2  no GPU here\nIn all: 2 passed, 2 skipped, 0 failed");
}

TEST_F(Runner, AFailureIsShownWithWhatItPrinted) {
  const CommandResult result = run(1, kPasses + kFails + "exit 1\n");
  EXPECT_FALSE(result.ok);
  EXPECT_TRUE(
      result.output.starts_with("a.cpp:9: Failure\n1 is not 2\n[  FAILED  ] A.Fails/1, where"))
      << result.output;
  EXPECT_NE(result.output.find("In all: 1 passed, 0 skipped, 1 failed"), std::string::npos)
      << result.output;
  EXPECT_EQ(result.output.find("said"), std::string::npos) << result.output;
}

TEST_F(Runner, AProcessThatEndsInATestFails) {
  const CommandResult result =
      run(2, kPasses + "echo '[ RUN      ] A.Ends'; echo last words; exit 3\n");
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.output.find("last words\nThe process ended in A.Ends."), std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find("status 3"), std::string::npos) << result.output;
}

// For the next test: passes, or does as it is told.
TEST(RunnerSample, DoesAsTold) {
  const char* variable = std::getenv("CRIA_TEST_TOLD");
  const std::string told = variable ? variable : "";
  if (told == "skip") GTEST_SKIP() << "told to skip";
  EXPECT_NE(told, "fail");
}

// The lines above are those of the GoogleTest that is here.
TEST_F(Runner, UnderstandsThisGoogleTest) {
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  const auto told = [&](const std::string& what, const std::string& filter) {
    return run_command("CRIA_TEST_TOLD=" + what + " " +
                       words_of({kRun, "2", self, "--gtest_filter=" + filter}));
  };
  const std::string sample = "RunnerSample.*";
  EXPECT_TRUE(told("pass", sample).output.starts_with("In all: 1 passed, 0 skipped, 0 failed"));
  EXPECT_TRUE(
      told("skip", sample).output.starts_with("Skipped, by reason:\n     1  told to skip\n"));
  const CommandResult failed = told("fail", sample), none = told("pass", "NoSuch.*");
  EXPECT_FALSE(failed.ok);
  EXPECT_NE(failed.output.find("Expected: (told) != (\"fail\")"), std::string::npos)
      << failed.output;
  EXPECT_NE(failed.output.find("In all: 0 passed, 0 skipped, 1 failed"), std::string::npos)
      << failed.output;
  EXPECT_FALSE(none.ok);
  EXPECT_NE(none.output.find("No test has such a name."), std::string::npos) << none.output;
}

}  // namespace
}  // namespace cria::test
