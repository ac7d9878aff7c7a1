#include "base/durable_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "base/input_file.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "support/files.h"

namespace cria {
namespace {

using test::expect_error;
namespace fs = std::filesystem;

size_t entries(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST(DurableFile, AppearsOnlyOnCommit) {
  const test::TemporaryFolder folder;
  {
    DurableFile file(folder / "a");
    file.write("one ");
    EXPECT_FALSE(fs::exists(folder / "a"));
    file.write("two");
    file.commit();
  }
  EXPECT_EQ(read_text(folder / "a"), "one two");
  { DurableFile(folder / "a").write("never seen"); }
  EXPECT_EQ(read_text(folder / "a"), "one two");
  EXPECT_EQ(entries(folder.path()), 1u);
}

// Larger than the windows that go to the disk one by one, in pieces that do not fit them.
TEST(DurableFile, LargeFilesComeThroughWhole) {
  for (const fs::path& place : {fs::temp_directory_path(), test::memory_folder()}) {
    const test::TemporaryFolder folder(place);
    std::string text(100'000'000, '\0');
    uint32_t state = 1;
    for (char& c : text) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    DurableFile file(folder / "a");
    std::string_view rest = text;
    for (size_t piece = 1; !rest.empty(); piece = piece * 3 + 1) {
      file.write(rest.substr(0, piece));
      rest.remove_prefix(std::min(piece, rest.size()));
    }
    file.commit();
    EXPECT_TRUE(read_text(folder / "a") == text) << place;
  }
}

TEST(DurableFile, ReplacesTheFileThatALinkNames) {
  const test::TemporaryFolder folder;
  fs::create_directory(folder / "kept");
  fs::create_symlink("kept/far", folder / "near");  // nothing there yet
  fs::create_symlink("near", folder / "link");
  for (const char* text : {"made", "replaced"}) {
    write_text(folder / "link", text);
    EXPECT_TRUE(fs::is_symlink(folder / "link") && fs::is_symlink(folder / "near"));
    EXPECT_FALSE(fs::is_symlink(folder / "kept/far"));
    EXPECT_EQ(read_text(folder / "kept/far"), text);
  }
  EXPECT_EQ(entries(folder.path()), 3u);
  EXPECT_EQ(entries(folder / "kept"), 1u);

  fs::create_symlink("ring", folder / "ring");
  expect_error([&] { write_text(folder / "ring", "x"); }, {"/ring", "circle"});
}

TEST(DurableFile, WritesIntoAPipe) {
  const test::TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("pipe", folder / "link");
  check_writable(pipe);  // does not wait for a reader
  for (const std::string& name : {pipe, std::string(folder / "link")}) {
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    ASSERT_GE(reader, 0);
    write_text(name, "through");
    char got[100];
    EXPECT_EQ(::read(reader, got, sizeof got), 7);
    ::close(reader);
  }
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(entries(folder.path()), 2u);
}

// As `cria ... --json /dev/stdout > file`, by a link like that one.
TEST(DurableFile, AppendsToTheOwnOutput) {
  const test::TemporaryFolder folder;
  const fs::path link = folder / "stdout";
  fs::create_symlink("/proc/self/fd/1", link);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool ok = std::freopen((folder / "out").c_str(), "w", stdout) &&
                    std::printf("printed\n") && (write_text(link, "written\n"), true) &&
                    std::printf("at last\n") && std::fflush(stdout) == 0;
    ::_exit(ok ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(read_text(folder / "out"), "printed\nwritten\nat last\n");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(entries(folder.path()), 2u);
}

// A process that is killed leaves what it was writing; what a living one writes is never taken.
TEST(DurableFile, RemovesWhatAKilledProcessLeft) {
  const test::TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    DurableFile file(folder / "a");
    file.write("part");
    if (::write(ready[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]), ::close(ready[1]);
  write_text(folder / "a.cria-nobody", "a name that is like one's");
  write_text(folder / "a.backup", "kept");
  const auto clean = [&] {
    for (const auto& entry : fs::directory_iterator(folder.path()))
      DurableFile::remove_if_abandoned(entry.path());
  };
  clean();
  EXPECT_EQ(entries(folder.path()), 2u) << "the child's, and the backup";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  clean();
  EXPECT_EQ(entries(folder.path()), 1u);
  EXPECT_EQ(read_text(folder / "a.backup"), "kept");
}

TEST(DurableFile, LooksWithoutTouching) {
  const test::TemporaryFolder folder;
  write_text(folder / "a", "kept");
  check_writable(folder / "a");
  check_writable(folder / "b");
  EXPECT_EQ(read_text(folder / "a"), "kept");
  EXPECT_EQ(entries(folder.path()), 1u);
  expect_error([&] { check_writable(folder.path()); }, {"it is a folder"});
  expect_error([&] { check_writable(folder / "none/a"); }, {"none/a", "folder that exists"});
}

TEST(DurableFile, RenameNamesBothEnds) {
  const test::TemporaryFolder folder;
  expect_error([&] { rename_durably(folder / "none", folder / "b"); }, {"none", "/b", "No such"});
}

TEST(MappedFile, ShowsBytes) {
  const test::TemporaryFolder folder;
  write_text(folder / "a", std::string_view("x\0y", 3));
  MappedFile file(folder / "a");
  EXPECT_EQ(file.text(), std::string_view("x\0y", 3));
  MappedFile moved = std::move(file);
  EXPECT_EQ(moved.bytes().size(), 3u);
  EXPECT_EQ(file.bytes().size(), 0u);
  write_text(folder / "empty", "");
  EXPECT_TRUE(MappedFile(folder / "empty").text().empty());
}

TEST(InputFile, ReadsAndNoticesAFileCutShort) {
  const test::TemporaryFolder folder;
  write_text(folder / "a", "0123456789");
  const InputFile file(folder / "a");
  EXPECT_EQ(file.size(), 10u);
  std::string text(4, '?');
  file.read(3, text);
  EXPECT_EQ(text, "3456");
  fs::resize_file(folder / "a", 5);
  expect_error([&] { file.read(3, text); }, {"/a", "was cut short while it was read"});
}

TEST(InputFile, RefusesPipesAtOnce) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_error([&] { InputFile(folder / "pipe"); }, {"/pipe", "a device or a pipe"});
  expect_error([&] { MappedFile("/dev/zero"); }, {"/dev/zero", "a device or a pipe"});
}

TEST(MappedFile, ErrorsNameThePath) {
  const test::TemporaryFolder folder;
  expect_error([&] { MappedFile(folder / "none"); }, {"/none", "No such file"});
  expect_error([&] { MappedFile(folder.path()); }, {folder.path().string(), "not a file"});
}

TEST(JsonMapText, RefusesHostileText) {
  const auto parse = [](const std::string& text) {
    return [=] { parse_json_map(text, "a.json"); };
  };
  EXPECT_EQ(parse_json_map(R"({"a": {"b": [1, 2]}, "c": {"b": 3}})", "a")["c"]["b"], 3);
  expect_error(parse(""), {"a.json", "not valid JSON"});
  expect_error(parse("{\"a\": 1e999}"), {"a.json", "too large"});
  expect_error(parse(R"({"a": 1, "\u0061": 2})"), {"a.json", "\"a\" twice"});
  expect_error(parse(R"([{"a": {"k": 1, "k": 2}}])"), {"\"k\" twice"});
  expect_error(parse(std::string(1000000, '[')), {"a.json", "nested deeper"});
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  expect_error(parse(objects), {"nested deeper"});
}

}  // namespace
}  // namespace cria
