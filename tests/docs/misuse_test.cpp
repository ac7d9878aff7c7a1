// The mistakes that docs/tile.md shows do not compile, and the compiler says the promised sentence.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/format.h"
#include "docs/quotes.h"
#include "support/command.h"
#include "support/places.h"

namespace cria::test {
namespace {

// One compilation of all mistakes; each has a sentence of its own.
void expect_sentences(const std::string& compiler, const std::vector<std::string>& mistakes) {
  const std::string root = in_repository("").string();
  std::string command = compiler + " -I" + quoted(root + "/src") + " -I" + quoted(root + "/tests");
  for (const std::string& mistake : mistakes)
    command += " -include " + quoted(root + "/tests/docs/misuse/" + mistake + ".h");
  const CommandResult result = run_command(command);
  EXPECT_FALSE(result.ok) << command;
  for (const std::string& mistake : mistakes) {
    std::string sentence = doc_output("docs/tile.md", mistake);
    ASSERT_FALSE(sentence.empty());
    sentence.pop_back();  // the newline
    EXPECT_NE(result.output.find(sentence), std::string::npos)
        << mistake << " should give: " << sentence << "\n"
        << command << "\n"
        << result.output;
  }
}

class DocMisuse : public WithSources {};

TEST_F(DocMisuse, HostCompilerSaysTheSentence) {
  expect_sentences(fmt::format("{} -std=c++20 -fsyntax-only -DCRIA_TARGET_CPU=1 -x c++ /dev/null",
                               quoted(CRIA_CXX)),
                   {"layouts_differ", "uneven_tile", "lazy_update", "const_store",
                    "stride_compared", "sum_of_rows", "dot_shapes", "narrow_panel"});
}

// A GPU computes tiles at once, so lazy_update is no mistake there.
TEST_F(DocMisuse, NvccSaysTheSentence) {
  if (std::string(CRIA_NVCC).empty()) GTEST_SKIP() << "this build has no CUDA compiler";
  expect_sentences(fmt::format("{} -std=c++20 --expt-relaxed-constexpr -arch=sm_80 -ptx "
                               "-o /dev/null -DCRIA_TARGET_CUDA=1 -x cu /dev/null",
                               quoted(CRIA_NVCC)),
                   {"layouts_differ", "uneven_tile", "const_store", "stride_compared",
                    "sum_of_rows", "dot_shapes", "narrow_panel"});
}

}  // namespace
}  // namespace cria::test
