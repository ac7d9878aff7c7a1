// The built program against files, options and endings that nobody meant well with: one sentence,
// exit code 2, and what was there stays.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/cli.h"
#include "runtime/product.h"

namespace cria::test {
namespace {

const std::string kTrain = "train --config debug --device cpu --validate-every 0 ";

class Hostile : public Cli {
 protected:
  // A run of a few steps in this folder.
  void make_run(const std::string& name, const std::string& more = "") {
    const CliOutput output = run(kTrain + "--steps 2 --out " + file(name) + " " + more);
    ASSERT_EQ(output.exit_code, 0) << output.err;
  }
  pid_t start_training(std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {
        "train",   "--config",       "debug", "--device",  "cpu",
        "--steps", "1000000000",     "--out", file("run"), "--validate-every",
        "0",       "--report-every", "100"};
    words.insert(words.end(), more.begin(), more.end());
    return start(words);
  }
  static int wait(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }
  static void expect_exit(int status, int code) {
    ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), code);
  }
  void expect_saved() const { EXPECT_TRUE(fs::exists(file("run/latest/model.safetensors"))); }
};

TEST_F(Hostile, TuneLeavesOtherFilesAlone) {
  write_text(file("thesis.txt"), "three years of work");
  for (int i = 0; i < 2; ++i)
    expect_refused(
        "tune vector_add --n 1000 --device cpu --seconds 0 --cache " + file("thesis.txt"),
        "--cache");
  EXPECT_EQ(read_text(file("thesis.txt")), "three years of work");
  EXPECT_FALSE(fs::exists(file("thesis.txt.lock")));
  EXPECT_FALSE(fs::exists(file("thesis.txt.corrupt")));
}

// A checkpoint from elsewhere may say anything about how it was begun.
TEST_F(Hostile, ResumeTakesNoOtherOptionsFromACheckpoint) {
  make_run("run", "--lr 0.01");
  write_text(file("victim"), "kept");
  const fs::path remembered = file("run/latest/training.json");
  Json progress = read_json(remembered);
  EXPECT_EQ(progress["options"].at("--lr"), Json::array({"0.01"}));
  for (const char* name : {"--json", "--out", "--config", "--tokenizer"})
    progress["options"][name] = Json::array({file("victim")});
  progress["options"]["--device"] = Json::array({"cuda:99"});
  progress["options"]["--help"] = Json::array({"true"});
  progress["options"]["--nonsense"] = Json::array({"x"});
  write_json(remembered, progress);
  const CliOutput output = run("train --resume --device cpu --steps 3 --out " + file("run"));
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("resumed at step 2"), std::string::npos) << output.out;
  EXPECT_EQ(read_text(file("victim")), "kept");
  const Json options = read_json(file("run/latest/training.json")).at("options");
  for (const char* name : {"--json", "--out", "--config", "--tokenizer", "--device", "--nonsense"})
    EXPECT_FALSE(options.contains(name)) << name;
}

TEST_F(Hostile, DamagedProgressIsOneSentence) {
  make_run("run");
  const fs::path remembered = file("run/latest/training.json");
  const Json good = read_json(remembered);
  for (const auto& [field, value] :
       std::vector<std::pair<std::string, Json>>{{"settings", 3},
                                                 {"settings", nullptr},
                                                 {"step", -1},
                                                 {"step", 1e9},
                                                 {"step", uint64_t{18446744073709551615u}},
                                                 {"options", 3}}) {
    Json bad = good;
    bad[field] = value;
    write_json(remembered, bad);
    expect_refused("train --resume --device cpu --steps 3 --out " + file("run"), "training.json");
  }
}

TEST_F(Hostile, ResumeNeedsACheckpoint) {
  expect_refused("train --config debug --device cpu --steps 2 --resume --out " + file("none"),
                 "leave --resume out");
  EXPECT_FALSE(fs::exists(file("none")));
}

TEST_F(Hostile, TwoWritersToOneFolder) {
  const pid_t child = start_training();
  ASSERT_GE(child, 0);
  wait_for("loss");
  expect_refused(kTrain + "--steps 2 --out " + file("run"), "process " + std::to_string(child));
  interrupt(child);
  EXPECT_EQ(run("train --resume --device cpu --steps 1 --out " + file("run")).exit_code, 0);
}

// A terminal that goes away may say so twice.
TEST_F(Hostile, AHangupEndsLikeControlC) {
  const auto before = ::signal(SIGHUP, SIG_DFL);  // tests may run under nohup
  const pid_t child = start_training();
  ::signal(SIGHUP, before);
  ASSERT_GE(child, 0);
  wait_for("loss");
  ::kill(child, SIGHUP);
  ::kill(child, SIGHUP);
  expect_exit(wait(child), 0);
  EXPECT_NE(read_text(file("out")).find("--resume goes on"), std::string::npos);
  expect_saved();
}

// As under nohup.
TEST_F(Hostile, AHangupIgnoredFromTheStartStaysSo) {
  const auto before = ::signal(SIGHUP, SIG_IGN);
  const pid_t child = start_training();
  ::signal(SIGHUP, before);
  ASSERT_GE(child, 0);
  wait_for("loss");
  ::kill(child, SIGHUP);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "it has ended";
  expect_exit(interrupt(child), 0);
}

TEST_F(Hostile, AClosedOutputEndsLikeControlC) {
  const std::string command = "{ " + quoted(cria_program()) + " " + kTrain +
                              "--steps 1000000000 --report-every 1 --out " + quoted(file("run")) +
                              " 2> " + quoted(file("err")) + "; echo $? > " + quoted(file("code")) +
                              "; } | head -n 3 > " + quoted(file("out"));
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read_text(file("code")), "2\n");
  EXPECT_EQ(std::ranges::count(read_text(file("err")), '\n'), 1) << read_text(file("err"));
  EXPECT_NE(read_text(file("err")).find("the output could not be written"), std::string::npos);
  expect_saved();
}

// No file that the run opens takes the place of the output that is not there.
TEST_F(Hostile, OutputThatIsClosedFromTheStartGoesIntoNoFile) {
  const std::string train = quoted(cria_program()) + " " + kTrain + "--steps 5 --out " +
                            quoted(file("run")) + " --json " + quoted(file("log")) + " >&- 2> " +
                            quoted(file("err"));
  expect_exit(std::system(train.c_str()), 2);
  expect_saved();
  std::istringstream lines(read_text(file("log")));
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(Json::accept(line)) << line;
}

// The progress line goes to a terminal that is then closed, without a signal.
TEST_F(Hostile, ATerminalThatGoesAwayEndsLikeControlC) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) GTEST_SKIP() << "there are no pseudo-terminals here";
  ASSERT_TRUE(::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0);
  fs::create_symlink(::ptsname(terminal), file("err"));
  const pid_t child = start_training();
  ASSERT_GE(child, 0);
  char some[64];
  ASSERT_GT(::read(terminal, some, sizeof some), 0) << "no progress was shown";
  ::close(terminal);
  expect_exit(wait(child), 0);
  expect_saved();
}

// The file may have 3 MiB, which the checkpoints need not, and the log soon has.
TEST_F(Hostile, AFullDiskForTheLogIsSaidAndTheRunSaved) {
  make_run("run");
  write_text(file("log"), std::string(3 * 1024 * 1024 - 1000, '\n'));
  const std::string command =
      "trap '' XFSZ; ulimit -f $((3 * 1024 * 1024 / 512)); exec " + quoted(cria_program()) +
      " train --resume --device cpu --steps 100000 --report-every 1 --out " + quoted(file("run")) +
      " --json " + quoted(file("log")) + " > " + quoted(file("out")) + " 2> " + quoted(file("err"));
  const int status = std::system(("sh -c " + quoted(command)).c_str());
  expect_exit(status, 2);
  const std::string said = read_text(file("err"));
  for (const std::string& part : {file("log"), std::string("File too large"), std::string("saved")})
    EXPECT_NE(said.find(part), std::string::npos) << said;
  EXPECT_GT(read_json(file("run/latest/training.json")).at("step"), 2);
  std::istringstream lines(read_text(file("log")));
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(line.empty() || Json::accept(line)) << line;
  EXPECT_TRUE(read_text(file("log")).ends_with("}\n"));
}

TEST_F(Hostile, DataCutShortIsSaidAndTheRunSaved) {
  write_text(file("text"), std::string(100000, 'x'));
  const pid_t child = start_training({"--data", file("text")});
  ASSERT_GE(child, 0);
  wait_for("loss");
  fs::resize_file(file("text"), 10);
  expect_exit(wait(child), 2);
  for (const std::string& part : {file("text"), std::string("cut short"), std::string("is saved")})
    EXPECT_NE(read_text(file("err")).find(part), std::string::npos) << read_text(file("err"));
  expect_saved();
}

TEST_F(Hostile, JsonIsNotWrittenOverTheData) {
  write_text(file("text"), std::string(10000, 'x'));
  fs::create_hard_link(file("text"), file("other"));
  for (const char* name : {"text", "other"})
    expect_refused(kTrain + "--steps 2 --data " + file("text") + " --json " + file(name),
                   file(name));
  EXPECT_EQ(fs::file_size(file("text")), 10000u);
}

TEST_F(Hostile, JsonIsLookedAtBeforeTheWork) {
  write_text(file("plain"), "");
  for (const char* command :
       {"train --config llama-1b", "compare --config llama-1b", "diff --config llama-1b",
        "generate --model none", "logits --model none --tokens 1", "devices", "bench gemm",
        "tune gemm", "inspect gemm --m 4096 --n 4096 --k 4096"})
    expect_refused(std::string(command) + " --json " + file("plain/x.json"), "cannot write");
}

TEST_F(Hostile, EmptyValuesAreRefused) {
  for (const char* option : {"--out", "--model", "--tokenizer", "--data", "--config", "--json",
                             "--steps", "--lr", "--plan", "--device"})
    expect_refused(std::string("train ") + option + " ''", std::string(option) + ": a value");
  expect_refused("generate --model ''", "--model");
  expect_refused("generate --model x --temperature ''", "--temperature");
  expect_refused("bench rmsnorm --rows ''", "--rows");
  expect_refused("bench ''", "KERNEL");
}

TEST_F(Hostile, NumbersAreDecimalAndFit) {
  const CliOutput output = run(kTrain + "--steps 010 --seed 007 --json " + file("log"));
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(read_text(file("log")).find("{\"step\":10,"), std::string::npos);
  EXPECT_EQ(read_text(file("log")).find("{\"step\":11,"), std::string::npos);
  expect_refused(kTrain + "--seed 18446744073709551616",
                 "--seed: 18446744073709551616 is not in range");
  expect_refused(kTrain + "--seed -1", "--seed: -1 is not in range");
  expect_refused("bench rmsnorm --rows 99999999999999999999", "--rows");
  expect_refused("logits --model x --tokens 1,,2", "between two commas");
  expect_refused("logits --model x --tokens 1,2,", "between two commas");
  expect_refused("logits --model x --tokens 4294967297", "4294967297");
  expect_refused("compare --plans flash,,fused", "between two commas");
}

// Over a single position a softmax has no gradient.
TEST_F(Hostile, DiffNeedsTwoPositions) {
  expect_refused("diff --device cpu --seq 1", "--seq 1");
  EXPECT_EQ(run("diff --device cpu --seq 2").exit_code, 0) << read_text(file("err"));
}

// Whatever the limit, there is a sentence or a result.
TEST_F(Hostile, LittleMemoryIsNoCrash) {
  if (product_library(kCpu).starts_with("OpenBLAS"))
    GTEST_SKIP() << "OpenBLAS tries without end to get memory that it is refused";
  // With less, the system cannot lay the program itself out: with kernels for GPUs it is large.
  const int program_mib = static_cast<int>(std::filesystem::file_size(cria_program()) >> 20);
  const int least = std::max(60, 48 + program_mib) / 2 * 2;
  for (int mib = least; mib <= least + 80; mib += 2) {
    const std::string command = "ulimit -v " + std::to_string(mib * 1024) + "; exec " +
                                quoted(cria_program()) + " " + kTrain + "--steps 1 > " +
                                quoted(file("out")) + " 2> " + quoted(file("err"));
    const int status = std::system(("sh -c " + quoted(command)).c_str());
    ASSERT_TRUE(WIFEXITED(status)) << "a signal with " << mib << " MiB";
    // 127: the system's loader did not get so far as to start it.
    EXPECT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2 || WEXITSTATUS(status) == 127)
        << WEXITSTATUS(status) << " with " << mib << " MiB: " << read_text(file("err"));
  }
}

TEST_F(Hostile, WeightsThatAreNoNumbersAreNamed) {
  make_run("run");
  const fs::path weights = file("run/latest/model.safetensors");
  const float nan = NAN;
  std::fstream stream(weights, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(-4, std::ios::end);
  stream.write(reinterpret_cast<const char*>(&nan), sizeof nan);
  stream.close();
  for (const char* command : {"logits --tokens 1", "generate"})
    expect_refused(std::string(command) + " --device cpu --model " + file("run/latest"),
                   "model.norm.weight");
}

TEST_F(Hostile, PipesAreNoFiles) {
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  expect_refused(kTrain + "--data " + file("pipe"), "a pipe");
  expect_refused(kTrain + "--tokenizer " + file("pipe"), "a pipe");
  expect_refused("train --device cpu --config " + file("pipe"), "a pipe");
  expect_refused("train --device cpu --config /dev/zero", "a device");
}

// What a file says is shown, not done.
TEST_F(Hostile, NamesInFilesDoNotTalkToTheTerminal) {
  make_run("run");
  const fs::path weights = file("run/latest/model.safetensors");
  std::string bytes = read_text(weights);
  const std::string name = "model.norm.weight", evil = "\\u001b[2Jnorm.wgt";  // as long
  ASSERT_EQ(name.size(), evil.size());
  bytes.replace(bytes.find(name), name.size(), evil);
  write_text(weights, bytes);
  expect_refused("logits --device cpu --tokens 1 --model " + file("run/latest"),
                 "\\x1b[2Jnorm.wgt");
  EXPECT_EQ(read_text(file("err")).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace cria::test
