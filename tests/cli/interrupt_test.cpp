// Ctrl-C in the built program.
#include "cli/cli.h"

namespace cria::test {
namespace {

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
  const pid_t child =
      start({"train", "--config", "debug", "--device", "cpu", "--steps", "100000000"}, "3");
  ASSERT_GE(child, 0);
  wait_for("loss");
  const fs::path threads = "/proc/" + std::to_string(child) + "/task";
  int takers = 0, others = 0;
  for (const auto& thread : fs::directory_iterator(threads))
    ++(takes_interrupts(thread) ? takers : others);
  EXPECT_FALSE(takes_interrupts(threads / std::to_string(child)));
  EXPECT_GE(others, 3);
  EXPECT_GE(takers, 1);
  const int status = interrupt(child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
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

}  // namespace
}  // namespace cria::test
