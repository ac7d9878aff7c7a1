// The built program: what it prints, and how it takes bad input: one sentence and exit code 2.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "lab/describe_run.h"
#include "runtime/device.h"
#include "support/command.h"

namespace cria {
namespace {

using test::quoted;

namespace fs = std::filesystem;

struct Output {
  int exit_code;
  std::string out, err;
};

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (fs::temp_directory_path() / "cria-cli-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }

  // `arguments` are words for the shell.
  Output run(const std::string& arguments) const {
    const std::string command = "CRIA_CACHE=" + quoted(file("tuned.json")) + " " +
                                quoted(CRIA_BINARY) + " " + arguments + " > " +
                                quoted(file("out")) + " 2> " + quoted(file("err"));
    const int status = std::system(command.c_str());
    return {WEXITSTATUS(status), read_text(file("out")), read_text(file("err"))};
  }

  // The same without a shell, and without waiting for its end.
  pid_t start(std::vector<std::string> words) const {
    words.insert(words.begin(), "cria");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string out = file("out"), err = file("err"), cache = file("tuned.json");
    const pid_t child = ::fork();
    if (child != 0) return child;
    if (!std::freopen(out.c_str(), "w", stdout) || !std::freopen(err.c_str(), "w", stderr))
      ::_exit(99);
    ::setenv("CRIA_CACHE", cache.c_str(), 1);
    ::signal(SIGINT, SIG_DFL);  // what a shell starts in the background ignores it
    ::alarm(60);                // should the test be gone
    ::execv(CRIA_BINARY, argv.data());
    ::_exit(98);
  }
  // Waits for these words in its output.
  void wait_for(const std::string& words) const {
    auto came = [&] {
      return fs::exists(file("out")) && read_text(file("out")).find(words) != std::string::npos;
    };
    for (int i = 0; i < 400 && !came(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  // Presses Ctrl-C; the status that the program ends with.
  static int interrupt(pid_t child) {
    ::kill(child, SIGINT);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }

  // Bad input: nothing on stdout, one line on stderr that has these words.
  void expect_refused(const std::string& arguments, const std::string& words) const {
    const Output output = run(arguments);
    EXPECT_EQ(output.exit_code, 2) << arguments << "\n" << output.err;
    EXPECT_EQ(std::count(output.err.begin(), output.err.end(), '\n'), 1) << arguments << "\n"
                                                                         << output.err;
    EXPECT_NE(output.err.find(words), std::string::npos) << arguments << "\n" << output.err;
  }

  fs::path folder_;
};

constexpr const char* kQuick = " --device cpu --seconds 0";

TEST_F(Cli, HelpIsTheDocumentation) {
  for (const char* command : {"", "compare", "train", "generate", "logits", "diff", "devices",
                              "bench", "inspect", "tune"}) {
    const std::string name = *command ? command : "cria";
    const Output output = run(std::string(command) + " --help");
    ASSERT_EQ(output.exit_code, 0);
    const fs::path page = fs::path(CRIA_SOURCE_DIR) / "docs" / "cli" / (name + ".md");
    const std::string title = *command ? "cria " + name : name;
    // Versions of CLI11 differ in the empty lines at the end.
    const std::string help = output.out.substr(0, output.out.find_last_not_of('\n') + 1);
    const std::string text = read_text(page);
    EXPECT_EQ(text.substr(0, text.find_last_not_of("\n`") + 1), "# " + title + "\n\n```\n" + help)
        << page << " is not what --help says: run tools/cli-docs " << CRIA_BINARY;
  }
}

TEST_F(Cli, VersionIsShown) {
  const Output output = run("--version");
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_TRUE(output.out.starts_with("cria ")) << output.out;
  EXPECT_NE(output.out.find(", commit " + build_commit()), std::string::npos) << output.out;
}

TEST_F(Cli, DevicesNamesTheCpu) {
  const Output output = run("devices --device cpu --quick --json " + file("devices.json"));
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("cpu: "), std::string::npos);
  const Json json = read_json(file("devices.json"));
  EXPECT_EQ(json.at(0).at("device"), "cpu");
  EXPECT_EQ(json.at(0).at("commit"), build_commit());
}

TEST_F(Cli, BenchWritesTableAndJson) {
  const Output output = run("bench rmsnorm --rows 64,65 --cols 256 --config all --json " +
                            file("bench.json") + kQuick);
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("copy (ceiling)"), std::string::npos) << output.out;
  const Json json = read_json(file("bench.json"));
  ASSERT_EQ(json.at("results").size(), 2u);
  for (const Json& row : json["results"][0]["rows"]) EXPECT_GT(row.at("time_us").get<double>(), 0);
}

TEST_F(Cli, InspectDrawsAWarp) {
  const Output output =
      run("inspect transpose --rows 128 --cols 128 --colour always --json " + file("i.json"));
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("not coalesced"), std::string::npos);
  EXPECT_NE(output.out.find("\x1b[31m"), std::string::npos);
  EXPECT_EQ(read_json(file("i.json")).at("results").size(), 4u);
}

TEST_F(Cli, TuneKeepsTheWinner) {
  const Output output = run(std::string("tune rmsnorm --rows 64 --cols 256") + kQuick);
  EXPECT_EQ(output.exit_code, 0) << output.err;
  const Json table = read_json(file("tuned.json"));
  EXPECT_EQ(table.at("devices").begin()->at("rmsnorm_forward").at("f32").size(), 1u)
      << table.dump(2);
}

TEST_F(Cli, CorruptCacheIsAWarningOnly) {
  write_text(file("tuned.json"), "{");
  const Output output = run(std::string("bench vector_add --n 1000") + kQuick);
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_EQ(std::count(output.err.begin(), output.err.end(), '\n'), 1) << output.err;
  EXPECT_NE(output.err.find("warning"), std::string::npos) << output.err;
}

TEST_F(Cli, BadInputGetsOneSentence) {
  expect_refused("", "a command is missing");
  expect_refused("frobnicate", "frobnicate");
  expect_refused("bench", "KERNEL");
  expect_refused("bench rmsnrm", "did you mean rmsnorm?");
  expect_refused("bench quicksort", "choose one of");
  expect_refused("bench rmsnorm --rows 0", "out of range");
  expect_refused("bench rmsnorm --rows -3", "out of range");
  expect_refused("bench rmsnorm --rows many", "rows");
  expect_refused("bench rmsnorm --rows 99999999999999999999", "rows");
  expect_refused("bench rmsnorm --rows 2000000000 --cols 2000000000 --device cpu", "use");
  expect_refused("bench rmsnorm --heads 4", "--heads does not apply to rmsnorm");
  expect_refused("bench rmsnorm --dtype f64", "f64");
  expect_refused("bench rmsnorm --dtype i32 --device cpu", "i32");
  expect_refused("bench rmsnorm --config fastest --device cpu", "fastest");
  expect_refused("bench rmsnorm --device tpu", "use cpu, cuda");
  expect_refused("bench attention --head-dim 300 --device cpu", "out of range");
  expect_refused("bench attention --heads 4 --kv-heads 3 --device cpu", "--kv-heads");
  expect_refused("bench rope --head-dim 63 --device cpu", "even");
  expect_refused("inspect rmsnrm", "did you mean rmsnorm?");
  expect_refused("inspect rmsnorm --programs 0", "programs");
  expect_refused("tune rmsnorm --rows 0", "out of range");
}

TEST_F(Cli, UnwritableFilesAreRefusedAtOnce) {
  write_text(file("plain"), "");
  expect_refused("bench rmsnorm --rows 8 --cols 8 --device cpu --json " + file("plain/x.json"),
                 "cannot write");
  expect_refused("tune rmsnorm --rows 8 --cols 8 --device cpu --cache " + file("plain/x.json"),
                 "--cache");
}

TEST_F(Cli, CompareRefusesAnUnknownPlanAtOnce) {
  const Output output = run("compare --config debug --device cpu --plans flash,nosuch");
  EXPECT_NE(output.exit_code, 0);
  EXPECT_EQ(output.out, "");
  EXPECT_NE(output.err.find("no plan called 'nosuch'"), std::string::npos) << output.err;
}

TEST_F(Cli, CompareShowsEveryPlan) {
  const Output output =
      run("compare --config debug --device cpu --steps 2 --kernels --json " + file("c.json"));
  EXPECT_EQ(output.exit_code, 0) << output.err;
  const Json json = read_json(file("c.json"));
  ASSERT_EQ(json.at("plans").size(), 3u);
  for (const Json& plan : json["plans"]) {
    EXPECT_NE(output.out.find(plan.at("plan").get<std::string>()), std::string::npos);
    EXPECT_NEAR(plan.at("losses").back().get<double>(),
                json["plans"][0]["losses"].back().get<double>(), 1e-4);
    EXPECT_GT(plan.at("launches_per_step").get<int>(), 0);
    EXPECT_GT(plan.at("memory_bytes").at("total").get<int64_t>(), 0);
  }
}

TEST_F(Cli, DiffFindsThePlansEqual) {
  const Output output = run("diff --plan fused --against flash --device cpu");
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("agree to rounding"), std::string::npos) << output.out;
}

TEST_F(Cli, TrainsResumesAndGenerates) {
  Output output = run("train --config debug --device cpu --validate-every 5 --save-every 0 --out " +
                      file("run") + " --steps 5 --json " + file("log"));
  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("validation loss"), std::string::npos) << output.out;
  output =
      run("train --resume --device cpu --steps 7 --out " + file("run") + " --json " + file("log"));
  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("resumed at step 5"), std::string::npos) << output.out;
  EXPECT_NE(read_text(file("log")).find("{\"step\":7,\"loss\":"), std::string::npos);

  const std::string generate = "generate --device cpu --quiet --tokens 20 --model " +
                               file("run/latest") + " --temperature 1 ";
  const std::string first = run(generate + "--seed 1 Hello").out;
  EXPECT_TRUE(first.starts_with("Hello")) << first;
  EXPECT_EQ(first, run(generate + "--seed 1 Hello").out);
  EXPECT_NE(first, run(generate + "--seed 2 Hello").out);
  output =
      run("generate --device cpu --tokens 20 --context 8 --model " + file("run/latest") + " Hello");
  EXPECT_NE(output.err.find("the context of 8 tokens is full"), std::string::npos) << output.err;

  output = run("logits --device cpu --tokens 1,2,3 --model " + file("run/latest") + " --json " +
               file("logits"));
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(read_json(file("logits")).at("logits").size(), 3u);
}

// A resumed run needs no more than its folder: every option is that of its beginning, unless given.
TEST_F(Cli, ResumesWithTheOptionsOfItsBeginning) {
  const std::string begin =
      "train --config debug --device cpu --plan fused --lr 0.01 --warmup 2 --batch 3 --seq 24 "
      "--seed 7 --save-every 4 --keep 9 --recompute --json ";
  ASSERT_EQ(run(begin + file("whole") + " --steps 8 --out " + file("a")).exit_code, 0);
  fs::create_directories(file("b"));
  fs::copy(file("a/step-000004"), file("b/step-000004"), fs::copy_options::recursive);
  fs::create_symlink("step-000004", file("b/latest"));
  const std::string resume = "train --resume --device cpu --out " + file("b");
  const Output output = run(resume + " --json " + file("rest"));
  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_NE(output.out.find("resumed at step 4"), std::string::npos) << output.out;
  auto losses = [&](const std::string& log) {
    std::map<int64_t, std::pair<double, double>> by_step;
    std::istringstream lines(read_text(file(log)));
    for (std::string line; std::getline(lines, line);)
      if (const Json json = Json::parse(line); json.contains("loss"))
        by_step[json["step"]] = {json["loss"], json["learning_rate"]};
    return by_step;
  };
  auto whole = losses("whole");
  ASSERT_EQ(whole.size(), 8u);
  whole.erase(whole.begin(), whole.upper_bound(4));
  EXPECT_EQ(whole, losses("rest"));

  EXPECT_EQ(run(resume + " --steps 9").exit_code, 0);
  expect_refused(resume + " --batch 4", "batch 3");
  Json progress = read_json(file("b/latest/training.json"));
  progress["options"]["--lr"] = Json::array({"fast"});
  write_json(file("b/latest/training.json"), progress);
  expect_refused(resume, "--lr");
  EXPECT_EQ(run(resume + " --lr 0.01 --steps 10").exit_code, 0);
}

TEST_F(Cli, BadTrainingInputIsRefused) {
  expect_refused("train --config nothing", "nothing");
  expect_refused("train --config debug --device cpu --data " + file("missing"), "missing");
  expect_refused("train --config debug --device cpu --plan fast --steps 1",
                 "baseline, fused, flash");
  expect_refused("train --config debug --device cpu --resume", "--out");
  expect_refused("train --config debug --device cpu --dtype tf32", "tf32");
  expect_refused("generate --model " + file("missing"), "missing");
  expect_refused("compare --config debug --device cpu --plans none", "none");
  for (const char* command : {"train", "compare", "diff"})
    expect_refused(
        command + std::string(" --config debug --device cpu --batch 1048576 --seq 1048576"),
        "smaller");
}

// Ctrl-C finishes the step, saves, and is no failure.
TEST_F(Cli, ControlCSavesATraining) {
  const pid_t child = start({"train", "--config", "debug", "--device", "cpu", "--steps",
                             "100000000", "--out", file("run")});
  ASSERT_GE(child, 0);
  wait_for("loss");
  const int status = interrupt(child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << read_text(file("err"));
  EXPECT_NE(read_text(file("out")).find("--resume goes on"), std::string::npos);
  EXPECT_TRUE(fs::exists(file("run/latest/model.safetensors")));
}

// Whether a thread of a process would take Ctrl-C.
bool takes_interrupts(const fs::path& thread) {
  const std::string status = read_text(thread / "status");
  const size_t at = status.find("SigBlk:");
  const uint64_t blocked = std::stoull(status.substr(at + 7), nullptr, 16);
  return (blocked >> (SIGINT - 1) & 1) == 0;
}

// A handler's frame on a thread that computes would be written over the data of oneDNN's products,
// whose stack pointer is not in the stack.
TEST_F(Cli, ControlCIsForAThreadThatDoesNotCompute) {
  const std::string out = file("out");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!std::freopen(out.c_str(), "w", stdout)) ::_exit(99);
    ::alarm(60);  // should the test be gone
    ::setenv("CRIA_THREADS", "3", 1);
    ::execl(CRIA_BINARY, "cria", "train", "--config", "debug", "--device", "cpu", "--steps",
            "100000000", nullptr);
    ::_exit(98);
  }
  auto began = [&] { return fs::exists(out) && read_text(out).find("loss") != std::string::npos; };
  for (int i = 0; i < 400 && !began(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const fs::path threads = "/proc/" + std::to_string(child) + "/task";
  int takers = 0, others = 0;
  for (const auto& thread : fs::directory_iterator(threads))
    ++(takes_interrupts(thread) ? takers : others);
  EXPECT_FALSE(takes_interrupts(threads / std::to_string(child)));
  EXPECT_GE(others, 3);
  EXPECT_GE(takers, 1);
  ::kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(Cli, CudaWithoutAGpuIsRefused) {
  if (devices().size() > 1) GTEST_SKIP() << "this machine has a CUDA device";
  expect_refused("bench rmsnorm --device cuda", "--device cpu");
}

// More than can be measured in a minute.
std::string many_sizes() {
  std::string sizes = "100000";
  for (int i = 1; i < 5000; ++i) sizes += "," + std::to_string(100000 + i);
  return sizes;
}

TEST_F(Cli, ControlCEndsItCleanly) {
  const pid_t child = start({"bench", "vector_add", "--n", many_sizes(), "--device", "cpu"});
  ASSERT_GE(child, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  const int status = interrupt(child);
  ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(read_text(file("err")), "cria: interrupted\n");
}

// The file is the old one until there are results, and then has those that were finished.
TEST_F(Cli, ControlCKeepsFinishedResults) {
  for (const std::string command : {"bench", "tune"}) {
    fs::remove(file("out"));
    write_text(file("x.json"), "old");
    const pid_t child = start({command, "vector_add", "--n", many_sizes(), "--seconds", "0.1",
                               "--device", "cpu", "--json", file("x.json")});
    ASSERT_GE(child, 0);
    wait_for("n=100001");
    EXPECT_EQ(read_text(file("x.json")), "old");
    const int status = interrupt(child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 130) << command;
    EXPECT_GE(read_json(file("x.json")).at("results").size(), 2u);
  }
  write_text(file("x.json"), "old");
  expect_refused("bench vector_add --config none --device cpu --json " + file("x.json"), "none");
  EXPECT_EQ(read_text(file("x.json")), "old");
}

// Where there is nothing to finish, the first Ctrl-C ends the program.
TEST_F(Cli, ControlCEndsAtOnceWhereNobodyLooks) {
  const pid_t child = start({"inspect", "gemm", "--m", "4096", "--n", "4096", "--k", "4096"});
  ASSERT_GE(child, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const int status = interrupt(child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << read_text(file("err"));
}

TEST_F(Cli, APresetIsNoFolder) {
  fs::create_directory(file("debug"));
  const fs::path here = fs::current_path();
  fs::current_path(folder_);
  const Output output = run("diff --config debug --plan fused --against flash --device cpu");
  expect_refused("diff --config ./debug --device cpu", "./debug/config.json");
  fs::current_path(here);
  EXPECT_EQ(output.exit_code, 0) << output.err;
}

TEST_F(Cli, InterruptedComparisonsShowNoPlanThatWasNotTimed) {
  const pid_t child = start({"compare", "--config", "medium", "--device", "cpu", "--batch", "1",
                             "--json", file("c.json")});
  ASSERT_GE(child, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  const int status = interrupt(child);
  ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(read_text(file("out")).find("baseline  "), std::string::npos);
  EXPECT_FALSE(fs::exists(file("c.json")));
}

TEST_F(Cli, OutputThatIsLostIsAnError) {
  const int status =
      std::system((CRIA_BINARY " devices --quick > /dev/full 2> " + file("err")).c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_NE(read_text(file("err")).find("the output could not be written"), std::string::npos);
}

TEST_F(Cli, ErrorsNameTheCommandAndWhatIsUnexpected) {
  expect_refused("inspect softmax --device cpu",
                 "not expected: --device cpu; 'cria inspect --help'");
  expect_refused("logits --model x --tokens \"\"", "a token is missing");
  expect_refused("train --config debug --model x", "--config");
}

TEST_F(Cli, ARunsFolderIsNoModel) {
  const std::string train = "train --config debug --device cpu --steps 4 --out ";
  Output output = run(train + file("run") + " --report-every 1");
  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(std::ranges::count(output.out, '['), 4) << output.out;  // every report asked for
  expect_refused("generate --model " + file("run"), "run/latest");
  expect_refused("train --steps 1 --model " + file("run"), "run/latest");
  expect_refused("generate --device cpu --context 3 --model " + file("run/latest") + " longer",
                 "the prompt has 6 tokens");
  output = run("train --resume --device cpu --out " + file("run"));
  EXPECT_NE(output.out.find("nothing was left to do"), std::string::npos) << output.out;
  output = run(train + file("none") + " --resume");
  EXPECT_NE(output.out.find("none holds no checkpoint"), std::string::npos) << output.out;
}

TEST_F(Cli, DecodersHaveTypesOfTheirOwn) {
  for (const std::string command : {"generate", "logits --tokens 1"})
    expect_refused(command + " --device cpu --dtype tf32 --model " + file("missing"),
                   "neither f32 nor bf16");
}

}  // namespace
}  // namespace cria
