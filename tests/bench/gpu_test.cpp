// bench/gpu: which parts it runs, with programs in place of the real ones that note how they were called.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "support/command.h"
#include "support/files.h"
#include "support/places.h"

namespace cria::test {
namespace {

namespace fs = std::filesystem;

class BenchGpu : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"cria", "cria_bench"})
      script(name, "echo $(basename $0) \"$@\" >> " + calls().string());
    python(true);
  }
  void script(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << "#!/bin/sh\n" << text << "\n";
    fs::permissions(folder_ / name, fs::perms::owner_all);
  }
  void python(bool has_torch) const {
    script("python3", "[ \"$1\" = -c ] && exit " + std::string(has_torch ? "0" : "1") +
                          "\necho $(basename $1) \"$@\" >> " + calls().string());
  }
  fs::path calls() const { return folder_ / "calls"; }
  // The calls made for these parts, and what was said.
  CommandResult run(const std::string& only) {
    fs::remove(calls());
    const CommandResult result = run_command(
        "PATH=" + quoted(folder_.path().string()) + ":$PATH ONLY=" + quoted(only) + " " +
        quoted(in_repository("bench/gpu").string()) + " " + quoted((folder_ / "cria").string()) +
        " " + quoted((folder_ / "results").string()));
    made_ = fs::exists(calls()) ? read_text(calls()) : "";
    return result;
  }

  TemporaryFolder folder_;
  std::string made_;
};

TEST_F(BenchGpu, RunsThePartsNamed) {
  const CommandResult result = run("gemm devices");
  EXPECT_TRUE(result.ok) << result.output;
  EXPECT_NE(result.output.find("all 2 parts met their targets"), std::string::npos)
      << result.output;
  const std::string results = (folder_ / "results").string();
  EXPECT_EQ(made_, "cria_bench claims --device cuda --only gemm --json " + results +
                       "/gemm.json\ncria devices --device cuda --json " + results +
                       "/devices.json\n");
}

TEST_F(BenchGpu, DecodingIsAPart) {
  EXPECT_TRUE(run("decode").ok);
  EXPECT_EQ(made_, "cria_bench decode --device cuda --json " +
                       (folder_ / "results" / "decode.json").string() + "\n");
}

TEST_F(BenchGpu, AFirstWordNamesAllThatBeginWithIt) {
  EXPECT_TRUE(run("train").ok);
  EXPECT_NE(made_.find("--configs small"), std::string::npos) << made_;
  EXPECT_NE(made_.find("--configs medium"), std::string::npos) << made_;
  EXPECT_NE(made_.find("--configs odd-ffn"), std::string::npos) << made_;
  EXPECT_EQ(std::count(made_.begin(), made_.end(), '\n'), 4) << made_;
}

TEST_F(BenchGpu, WithoutNamesRunsAll) {
  const CommandResult list = run_command(quoted(in_repository("bench/gpu").string()) + " --list");
  EXPECT_TRUE(run("").ok);
  EXPECT_EQ(std::count(made_.begin(), made_.end(), '\n'),
            1 + std::count(list.output.begin(), list.output.end(), ' '))
      << made_;
}

TEST_F(BenchGpu, UnknownPartsAreRefusedWithTheList) {
  const CommandResult result = run("gemm atention");
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.output.find("no part 'atention': choose from devices rmsnorm"),
            std::string::npos)
      << result.output;
  EXPECT_EQ(made_, "");
  EXPECT_FALSE(
      run_command("ONLY=atention " + quoted(in_repository("bench/gpu").string()) + " --list").ok);
}

TEST_F(BenchGpu, WhatNeedsTorchIsSaidToBeMissing) {
  python(false);
  const CommandResult some = run("softmax attention");
  EXPECT_TRUE(some.ok);
  EXPECT_NE(some.output.find("NOT measured: attention_forward attention_backward;"),
            std::string::npos)
      << some.output;
  EXPECT_FALSE(run("attention").ok) << "nothing was measured";
}

TEST_F(BenchGpu, APartThatFailsIsNamedAndTheOthersRun) {
  script("cria", "echo no GPU >&2; exit 2");
  const CommandResult result = run("devices gemm");
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.output.find("1 of 2 parts FAILED or missed a target: devices"),
            std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find("no GPU"), std::string::npos) << result.output;
}

}  // namespace
}  // namespace cria::test
