#include "base/durable_file.h"

#include <gtest/gtest.h>

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
