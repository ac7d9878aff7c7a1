#include "base/json.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <string>

#include "base/error.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

class JsonFile : public ::testing::Test {
 protected:
  JsonFile() {
    std::string name = (fs::temp_directory_path() / "cria-json-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~JsonFile() override { fs::remove_all(folder_); }

  static std::string message_of(auto&& f) {
    try {
      f();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  static void expect_has(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }

  fs::path folder_;
};

TEST_F(JsonFile, RoundTripKeepsOrder) {
  const fs::path path = folder_ / "a.json";
  write_json(path, Json{{"z", 1}, {"a", {1.5, "two"}}});
  EXPECT_EQ(read_json(path).dump(), R"({"z":1,"a":[1.5,"two"]})");
}

TEST_F(JsonFile, WritesWhatJsonCannotSay) {
  const fs::path path = folder_ / "a.json";
  write_json(path, Json{{"text", "a\xff\xc3"}, {"numbers", {NAN, INFINITY, 1}}});
  EXPECT_EQ(read_json(path).dump(), R"({"text":"a��","numbers":[null,null,1]})");
}

TEST_F(JsonFile, OverwritesAndLeavesNoTemporary) {
  const fs::path path = folder_ / "a.txt";
  write_text(path, "first, longer");
  write_text(path, "second");
  EXPECT_EQ(read_text(path), "second");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(JsonFile, NewFilesFollowTheUmask) {
  const mode_t saved = ::umask(022);
  write_text(folder_ / "a.txt", "x");
  ::umask(saved);
  EXPECT_EQ(fs::status(folder_ / "a.txt").permissions(), fs::perms{0644});
}

TEST_F(JsonFile, MissingFileIsNamed) {
  const std::string message = message_of([&] { read_json(folder_ / "none.json"); });
  expect_has(message, "none.json");
  expect_has(message, "No such file");
}

TEST_F(JsonFile, FolderIsNotAFile) {
  expect_has(message_of([&] { read_text(folder_); }), "it is a folder");
}

// What they give may never come, or never end.
TEST_F(JsonFile, PipesAndDevicesAreNotFiles) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const fs::path& path : {pipe, fs::path("/dev/zero")})
    expect_has(message_of([&] { read_text(path); }), path.string() + ": it is a device or a pipe");
}

TEST_F(JsonFile, FilesWithoutASizeAreReadToTheirEnd) {
  expect_has(read_text("/proc/self/status"), "SigBlk:");
}

TEST_F(JsonFile, AKeyTwiceIsRefused) {
  const fs::path path = folder_ / "twice.json";
  write_text(path, R"({"a": 1, "b": [{"c": 1, "c": 2}]})");
  expect_has(message_of([&] { read_json(path); }), "twice.json has the key \"c\" twice");
}

TEST_F(JsonFile, BrokenJsonSaysWhere) {
  const fs::path path = folder_ / "broken.json";
  for (const char* text : {"", "{\"a\": 1", "{\"a\": nope}", "\xff\xfe"}) {
    write_text(path, text);
    const std::string message = message_of([&] { read_json(path); });
    expect_has(message, "broken.json is not valid JSON at byte");
    expect_has(message, "correct or delete it");
  }
}

TEST_F(JsonFile, UnwritablePlaceIsNamed) {
  const std::string message = message_of([&] { write_text(folder_ / "no" / "a.txt", "x"); });
  expect_has(message, "a.txt");
  expect_has(message, "choose a folder that exists");
  // A folder in the way: the temporary must not stay behind.
  fs::create_directory(folder_ / "dir");
  expect_has(message_of([&] { write_text(folder_ / "dir", "x"); }), "cannot write");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace cria
