// The table of tuned configurations: what is written is found again, by key, whatever happens to
// the file in between.
#include "runtime/config_table.h"

#include <gtest/gtest.h>
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

TEST_F(ConfigTableTest, RecordingOverACorruptFileKeepsItAside) {
  write_text(file(), "not json");
  testing::internal::CaptureStderr();
  record_tuned(file(), winner("m<=64", "a"));
  EXPECT_NE(testing::internal::GetCapturedStderr().find(".corrupt"), std::string::npos);
  EXPECT_FALSE(ConfigTable::load(file()).empty());
  EXPECT_EQ(read_text(file().string() + ".corrupt"), "not json");
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
