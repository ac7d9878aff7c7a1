#include "support/command.h"

#include <gtest/gtest.h>

namespace cria::test {
namespace {

TEST(Command, QuotedWordsStayOneAndAsTheyAre) {
  const std::string word = "a  b 'c' \"$HOME\" \\ *";
  const CommandResult result = run_command("printf '%s|' " + quoted(word) + " end");
  EXPECT_TRUE(result.ok);
  EXPECT_EQ(result.output, word + "|end|");
}

TEST(Command, FailureIsNoticedAndItsWordsKept) {
  const CommandResult result = run_command("sh -c 'echo no >&2; exit 3'");
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.output, "no\n");
}

}  // namespace
}  // namespace cria::test
