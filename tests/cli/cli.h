// The built program as tests run it.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "support/command.h"
#include "support/places.h"

namespace cria::test {

namespace fs = std::filesystem;

struct CliOutput {
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
  CliOutput run(const std::string& arguments) const {
    const std::string command = "CRIA_CACHE=" + quoted(file("tuned.json")) + " " +
                                quoted(program_) + " " + arguments + " > " + quoted(file("out")) +
                                " 2> " + quoted(file("err"));
    const int status = std::system(command.c_str());
    return {WEXITSTATUS(status), read_text(file("out")), read_text(file("err"))};
  }

  // The same without a shell, and without waiting for its end.
  pid_t start(std::vector<std::string> words, const char* threads = nullptr) const {
    words.insert(words.begin(), "cria");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string out = file("out"), err = file("err"), cache = file("tuned.json"),
                      program = program_;
    const pid_t child = ::fork();
    if (child != 0) return child;
    if (!std::freopen(out.c_str(), "w", stdout) || !std::freopen(err.c_str(), "w", stderr))
      ::_exit(99);
    ::setenv("CRIA_CACHE", cache.c_str(), 1);
    if (threads) ::setenv("CRIA_THREADS", threads, 1);
    ::signal(SIGINT, SIG_DFL);  // what a shell starts in the background ignores it
    ::alarm(60);                // should the test be gone
    ::execv(program.c_str(), argv.data());
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
    const CliOutput output = run(arguments);
    EXPECT_EQ(output.exit_code, 2) << arguments << "\n" << output.err;
    EXPECT_EQ(std::count(output.err.begin(), output.err.end(), '\n'), 1) << arguments << "\n"
                                                                         << output.err;
    EXPECT_NE(output.err.find(words), std::string::npos) << arguments << "\n" << output.err;
  }

  fs::path folder_;
  std::string program_ = cria_program();
};

}  // namespace cria::test
