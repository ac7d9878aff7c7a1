// The table of tuned configurations: what is written is found again, by key, whatever happens to
// the file in between.
#include "runtime/config_table.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

class ConfigTableTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (fs::temp_directory_path() / "cria-table-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path file() const { return folder_ / "tuned.json"; }

  fs::path folder_;
};

TunedConfig winner(const std::string& shape_class, const std::string& config) {
  return {"Some GPU", "gemm_nt", DType::bf16, shape_class, config, 12.5};
}

TEST_F(ConfigTableTest, FindsWhatWasRecorded) {
  record_tuned(file(), winner("m<=64", "a"));
  record_tuned(file(), winner("m<=128", "b"));
  record_tuned(file(), winner("m<=64", "c"));
  const ConfigTable table = ConfigTable::load(file());
  const std::string* small = table.find("Some GPU", "gemm_nt", DType::bf16, "m<=64");
  const std::string* large = table.find("Some GPU", "gemm_nt", DType::bf16, "m<=128");
  ASSERT_TRUE(small && large);
  EXPECT_EQ(*small, "c");
  EXPECT_EQ(*large, "b");
  EXPECT_EQ(table.find("Other GPU", "gemm_nt", DType::bf16, "m<=64"), nullptr);
  EXPECT_EQ(table.find("Some GPU", "gemm_nn", DType::bf16, "m<=64"), nullptr);
  EXPECT_EQ(table.find("Some GPU", "gemm_nt", DType::f16, "m<=64"), nullptr);
  EXPECT_EQ(table.find("Some GPU", "gemm_nt", DType::bf16, "m<=32"), nullptr);
}

TEST_F(ConfigTableTest, AbsentFileIsAnEmptyTable) {
  testing::internal::CaptureStderr();
  EXPECT_TRUE(ConfigTable::load(file()).empty());
  EXPECT_TRUE(ConfigTable::load({}).empty());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(ConfigTableTest, CorruptFileIsIgnoredWithOneWarning) {
  for (const char* text : {"{\"format\":", "[1, 2]", "{\"format\": \"other\"}",
                           "{\"format\": \"cria tuned configurations, version 1\", \"devices\": 3}",
                           "{\"format\": \"cria tuned configurations, version 1\", \"devices\": "
                           "{\"g\": {\"k\": {\"f32\": {\"m<=1\": {}}}}}}"}) {
    write_text(file(), text);
    testing::internal::CaptureStderr();
    const bool empty = ConfigTable::load(file()).empty();
    const std::string warning = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(empty) << text;
    EXPECT_NE(warning.find(file().string()), std::string::npos) << text;
    EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1) << warning;
  }
}

// Each time under another name.
TEST_F(ConfigTableTest, RecordingOverADamagedTableKeepsItAside) {
  const std::string first = "{\"format\": \"cria tuned configurations, version 1\", \"dev",
                    second = first + "ices\": 3}";
  for (const auto& [damaged, aside] :
       {std::pair(first, ".corrupt"), std::pair(second, ".corrupt-2")}) {
    write_text(file(), damaged);
    testing::internal::CaptureStderr();
    record_tuned(file(), winner("m<=64", "a"));
    EXPECT_NE(testing::internal::GetCapturedStderr().find(aside), std::string::npos);
    EXPECT_FALSE(ConfigTable::load(file()).empty());
    EXPECT_EQ(read_text(file().string() + aside), damaged);
  }
  EXPECT_EQ(read_text(file().string() + ".corrupt"), first);
}

// What is no table is refused and stays as it is, without a lock's file beside it.
TEST_F(ConfigTableTest, OtherThingsAreLeftAlone) {
  const auto refused = [&](const fs::path& path, const char* why) {
    for (const bool record : {false, true}) {
      try {
        record ? record_tuned(path, winner("m<=64", "a")) : check_tuning_cache(path);
        ADD_FAILURE() << path << " was taken for a table";
      } catch (const Error& error) {
        const std::string text = error.what();
        for (const std::string& part : {path.string(), std::string(why), std::string("--cache")})
          EXPECT_NE(text.find(part), std::string::npos) << text;
      }
    }
    EXPECT_FALSE(fs::exists(path.string() + ".lock"));
    EXPECT_FALSE(fs::exists(path.string() + ".corrupt"));
  };
  for (const char* text : {"not json", "{\"format\": \"other\"}", "[]", "x"}) {
    write_text(file(), text);
    refused(file(), "something else");
    EXPECT_EQ(read_text(file()), text);
  }
  const fs::path pipe = folder_ / "pipe", folder = folder_ / "folder";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  fs::create_directory(folder);
  refused(pipe, "a device or a pipe");
  EXPECT_TRUE(fs::is_fifo(pipe));
  refused(folder, "a folder");
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(ConfigTableTest, AnEmptyFileIsAnEmptyTable) {
  write_text(file(), "");
  testing::internal::CaptureStderr();
  EXPECT_TRUE(ConfigTable::load(file()).empty());
  record_tuned(file(), winner("m<=64", "a"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_FALSE(ConfigTable::load(file()).empty());
}

TEST_F(ConfigTableTest, APipeIsNoTableToRead) {
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(ConfigTable::load(file()).empty());
  EXPECT_NE(testing::internal::GetCapturedStderr().find("a pipe"), std::string::npos);
}

TEST_F(ConfigTableTest, ProcessesThatWriteAtOnceLoseNothing) {
  constexpr int kProcesses = 4, kEach = 20;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int i = 0; i < kEach; ++i)
        record_tuned(file(),
                     winner("m<=" + std::to_string(p * kEach + i), "c" + std::to_string(p)));
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const ConfigTable table = ConfigTable::load(file());
  for (int i = 0; i < kProcesses * kEach; ++i)
    EXPECT_NE(table.find("Some GPU", "gemm_nt", DType::bf16, "m<=" + std::to_string(i)), nullptr)
        << i;
}

TEST_F(ConfigTableTest, UnwritablePlaceIsOneSentence) {
  write_text(folder_ / "plain", "");
  try {
    record_tuned(folder_ / "plain" / "tuned.json", winner("m<=64", "a"));
    FAIL() << "a file was taken for a folder";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("--cache"), std::string::npos) << error.what();
  }
  EXPECT_THROW(record_tuned({}, winner("m<=64", "a")), Error);
}

}  // namespace
}  // namespace cria
