// The pages cannot drift from the code: every C++ and CMake block is a quotation of a file that is
// compiled, and every file and link they name is there.
#include "docs/quotes.h"

#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "base/json.h"
#include "support/places.h"

namespace cria::test {
namespace {

namespace fs = std::filesystem;

const char* const kPages[] = {"docs/tile.md", "docs/architecture.md"};

class Docs : public WithSources {};

TEST_F(Docs, CodeIsQuotedFromFilesThatCompile) {
  for (const std::string page : kPages)
    for (const DocBlock& block : doc_blocks(page)) {
      const std::string where = page + ":" + std::to_string(block.line);
      if (block.language != "cpp" && block.language != "cmake") continue;
      if (block.kind != "quote") {
        ADD_FAILURE() << where << ": code that no <!-- quote FILE NAME --> introduces";
        continue;
      }
      EXPECT_EQ(block.text, quoted_region(block.file, block.name))
          << where << " differs from [" << block.name << "] in " << block.file;
    }
}

TEST_F(Docs, QuotedPageHasCode) { EXPECT_GT(doc_blocks("docs/tile.md").size(), 15u); }

// As GitHub makes them: "The life of a launch" is #the-life-of-a-launch.
std::string anchor_of(const std::string& heading) {
  std::string out;
  for (const unsigned char c : heading)
    if (std::isalnum(c) || c == '-' || c == '_')
      out += static_cast<char>(std::tolower(c));
    else if (c == ' ')
      out += '-';
  return out;
}

std::set<std::string> anchors_of(const fs::path& page) {
  static const std::regex kHeading("#+ (.*)");
  std::istringstream text(read_text(page));
  std::set<std::string> out;
  std::smatch match;
  for (std::string line; std::getline(text, line);)
    if (std::regex_match(line, match, kHeading)) out.insert(anchor_of(match[1]));
  return out;
}

TEST_F(Docs, LinksLeadSomewhere) {
  static const std::regex kLink(R"(\]\(([^)#:\s]*)(?:#([^)\s]*))?\))");
  for (const auto& entry : fs::directory_iterator(in_repository("docs"))) {
    if (entry.path().extension() != ".md") continue;
    const std::string text = read_text(entry.path()), page = entry.path().filename().string();
    for (std::sregex_iterator link(text.begin(), text.end(), kLink), end; link != end; ++link) {
      const std::string file = (*link)[1], anchor = (*link)[2];
      const fs::path target = file.empty() ? entry.path() : entry.path().parent_path() / file;
      ASSERT_TRUE(fs::exists(target)) << page << " links to " << file;
      EXPECT_TRUE(anchor.empty() || anchors_of(target).contains(anchor))
          << page << " links to " << file << "#" << anchor;
    }
  }
}

// Files that the pages name in backquotes: `src/...`, `tests/...`, `examples/...`, `docs/...`.
TEST_F(Docs, NamedFilesExist) {
  static const std::regex kFile(R"(`((?:src|tests|examples|docs|cmake|tools)/[\w./-]*)`)");
  for (const std::string page : kPages) {
    const std::string text = read_text(in_repository(page));
    for (std::sregex_iterator file(text.begin(), text.end(), kFile), end; file != end; ++file)
      EXPECT_TRUE(fs::exists(in_repository((*file)[1].str()))) << page << ": " << (*file)[1];
  }
}

}  // namespace
}  // namespace cria::test
