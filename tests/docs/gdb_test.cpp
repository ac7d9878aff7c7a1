// The debugger session of docs/tile.md, held again: its commands, and its answers in their order.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "base/format.h"
#include "docs/quotes.h"
#include "support/command.h"
#include "support/places.h"

namespace cria::test {
namespace {

class DocGdb : public WithSources {};

TEST_F(DocGdb, SessionGoesAsShown) {
  if (!run_command("gdb --version").ok) GTEST_SKIP() << "gdb is not installed";
  if (run_command(quoted(CRIA_CXX) + " --version").output.find("clang") != std::string::npos)
    GTEST_SKIP() << "the page shows what g++ makes for gdb, and this build is clang's";
  const std::string root = in_repository("").string(),
                    program = ::testing::TempDir() + "cria_gdb_program";
  const CommandResult built = run_command(fmt::format(
      "{0} -std=c++20 -g -O0 -DCRIA_TARGET_CPU=1 -I{1}/src -I{1}/tests "
      "{1}/tests/docs/gdb_program.cpp {1}/src/base/error.cpp {1}/src/tile/cpu/print.cpp -o {2}",
      quoted(CRIA_CXX), quoted(root), quoted(program)));
  ASSERT_TRUE(built.ok) << built.output;

  const std::string prompt = "(gdb) ", session = doc_output("docs/tile.md", "gdb");
  std::string command = "gdb -q -nx -batch";
  std::istringstream lines(session);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(prompt)) command += " -ex " + quoted(line.substr(prompt.size()));
  const CommandResult said = run_command(command + " " + quoted(program));
  std::remove(program.c_str());
  if (said.output.find("Operation not permitted") != std::string::npos)
    GTEST_SKIP() << "gdb may not trace programs here";

  size_t from = 0;
  lines = std::istringstream(session);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(prompt)) continue;
    const size_t at = said.output.find(line + "\n", from);
    ASSERT_NE(at, std::string::npos) << "not said: " << line << "\n"
                                     << command << "\n"
                                     << said.output;
    from = at + line.size();
  }
}

}  // namespace
}  // namespace cria::test
