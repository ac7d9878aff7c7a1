#include "base/file_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "support/files.h"

namespace cria {
namespace {

using test::expect_error;
namespace fs = std::filesystem;

constexpr const char* kAdvice = "choose another";

TEST(FileLock, GoesWithItsProcess) {
  const test::TemporaryFolder folder;
  const fs::path path = folder / "lock";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const FileLock lock(path, kAdvice);
    if (::write(ready[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]), ::close(ready[1]);
  EXPECT_FALSE(FileLock::take(path, kAdvice));
  EXPECT_EQ(FileLock::holder(path), "process " + std::to_string(child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  {
    const auto mine = FileLock::take(path, kAdvice);
    EXPECT_TRUE(mine);
    EXPECT_EQ(FileLock::holder(path), "process " + std::to_string(::getpid()));
    EXPECT_FALSE(FileLock::take(path, kAdvice));
  }
  EXPECT_TRUE(FileLock::take(path, kAdvice));
}

// A lock's name may be that of a file that has nothing to do with it.
TEST(FileLock, LeavesOtherFilesAsTheyAre) {
  const test::TemporaryFolder folder;
  for (const char* text :
       {"[dependencies]\n", "12 monkeys\n", "123456789012345678901234567890\n"}) {
    write_text(folder / "Cargo.lock", text);
    EXPECT_TRUE(FileLock::take(folder / "Cargo.lock", kAdvice));
    EXPECT_EQ(read_text(folder / "Cargo.lock"), text);
    EXPECT_EQ(FileLock::holder(folder / "Cargo.lock"), "another process");
  }
  write_text(folder / "far", "");
  fs::create_symlink("far", folder / "link");
  expect_error([&] { FileLock(folder / "link", kAdvice); }, {"/link", kAdvice});
  expect_error([&] { FileLock(folder.path(), kAdvice); }, {folder.path().string(), kAdvice});
  EXPECT_EQ(read_text(folder / "far"), "");
}

}  // namespace
}  // namespace cria
