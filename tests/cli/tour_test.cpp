// What `make run` shows, with the sizes that take long put smaller.
#include <sstream>

#include "cli/cli.h"

namespace cria::test {
namespace {

TEST_F(Cli, TheTourFitsItsPage) {
  const fs::path tour = in_repository("tools/tour");
  if (!exists(tour)) GTEST_SKIP() << "the sources are not here: this is a bundle";
  write_text(file("cria"),
             "#!/bin/sh\n"
             "case \"$*\" in\n"
             "  devices) set -- devices --quick ;;\n"
             "  compare) set -- compare --config debug --steps 3 ;;\n"
             "  compare*) set -- \"$@\" --steps 1 ;;\n"
             "esac\n"
             "exec " +
                 quoted(cria_program()) + " \"$@\"\n");
  fs::permissions(file("cria"), fs::perms::owner_all);
  const std::string command =
      "cd " + quoted(file("")) + " && CRIA_CACHE=" + quoted(file("tuned.json")) + " " +
      quoted(tour.string()) + " ./cria > " + quoted(file("out")) + " 2> " + quoted(file("err"));
  ASSERT_EQ(std::system(command.c_str()), 0) << read_text(file("err"));
  const std::string out = read_text(file("out"));
  std::istringstream lines(out);
  std::string last;  // command
  for (std::string line; std::getline(lines, line);) {
    const auto width = std::ranges::count_if(line, [](char c) { return (c & 0xc0) != 0x80; });
    EXPECT_LE(width, 100) << line;
    if (line.starts_with("$ ")) last = line;
  }
  EXPECT_EQ(last, "$ cria compare");
  // What is suggested at the end is there.
  const std::string end = out.substr(out.find("To go on"));
  for (const char* words :
       {"train --config debug --data", "generate --model run/latest", "bench attention"})
    EXPECT_NE(end.find(std::string("./cria ") + words), std::string::npos) << end;
  // The model speaks words of the text that it has learned from.
  EXPECT_NE(out.find("\"Where is your "), std::string::npos) << out;
  EXPECT_FALSE(fs::exists(file("run")));
}

}  // namespace
}  // namespace cria::test
