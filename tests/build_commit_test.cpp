// The commit that a build says it is of (cmake/commit.cmake).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/command.h"
#include "support/files.h"
#include "support/places.h"

namespace cria::test {
namespace {

class BuildCommit : public WithSources {
 protected:
  void SetUp() override {
    WithSources::SetUp();
    if (IsSkipped()) return;
    if (!run_command("git --version").ok || !run_command("cmake --version").ok)
      GTEST_SKIP() << "git or cmake is not installed";
    std::filesystem::create_directory(source_);
  }
  std::string git(const std::string& words) const {
    const CommandResult result = run_command("git -C " + quoted(source_.string()) +
                                             " -c user.name=a -c user.email=a@b " + words);
    EXPECT_TRUE(result.ok) << words << "\n" << result.output;
    return result.output.substr(0, result.output.find('\n'));
  }
  void write(const std::string& text) const { std::ofstream(source_ / "file") << text; }

  // What is written by another build of a folder.
  std::string written() const { return written_of(source_); }
  std::string written_of(const std::filesystem::path& source) const {
    const CommandResult result = run_command(fmt::format(
        "cmake -D SOURCE={} -D OUTPUT={} -P {}", quoted(source.string()),
        quoted(source_file_.string()), quoted(in_repository("cmake/commit.cmake").string())));
    EXPECT_TRUE(result.ok) << result.output;
    std::ostringstream text;
    text << std::ifstream(source_file_).rdbuf();
    return text.str();
  }
  static bool tells(const std::string& text, const std::string& commit) {
    return text.find("return \"" + commit + "\";") != std::string::npos;
  }

  TemporaryFolder folder_;
  const std::filesystem::path source_ = folder_ / "a source", source_file_ = folder_ / "commit.cpp";
};

TEST_F(BuildCommit, IsUnknownOutsideACheckout) { EXPECT_TRUE(tells(written(), "unknown")); }

TEST_F(BuildCommit, FollowsTheCheckoutAndMarksChanges) {
  git("init -q");
  write("1");
  git("add file");
  git("commit -q -m first");
  const std::string commit = git("rev-parse --short=12 HEAD");
  EXPECT_TRUE(tells(written(), commit));
  write("2");
  EXPECT_TRUE(tells(written(), commit + "+"));
  git("commit -q -a -m second");
  EXPECT_TRUE(tells(written(), git("rev-parse --short=12 HEAD")));
}

TEST_F(BuildCommit, AFolderWithinAnotherCheckoutHasNone) {
  git("init -q");
  write("1");
  git("add file");
  git("commit -q -m first");
  const std::filesystem::path within = source_ / "within";
  std::filesystem::create_directory(within);
  EXPECT_TRUE(tells(written_of(within), "unknown"));
}

TEST_F(BuildCommit, TheSourceIsWrittenOnlyWhenItChanges) {
  written();
  const auto before = std::filesystem::last_write_time(source_file_);
  written();
  EXPECT_EQ(std::filesystem::last_write_time(source_file_), before);
}

}  // namespace
}  // namespace cria::test
