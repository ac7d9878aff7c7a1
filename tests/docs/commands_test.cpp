// The commands of README and docs run as printed. A fenced block of commands is of the language `sh`; it runs by itself
// in a folder that looks like a checkout after `make build`, with small sizes put in by tests/docs/small. The blocks of other
// pages run with the PATH that README sets. A block marked after the language (```sh gpu) is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "base/json.h"
#include "docs/quotes.h"
#include "support/command.h"
#include "support/files.h"
#include "support/places.h"

namespace cria::test {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = CRIA_SOURCE_DIR;

const std::map<std::string, std::string> kReasons = {
    {"gpu", "a block of the docs marked gpu: for a machine with an NVIDIA GPU"},
    {"torch", "a block of the docs marked torch: needs PyTorch"},
    {"long", "a block of the docs marked long: builds or measures for minutes"},
};

// README, docs and the examples', from the repository's root. docs/cli is what --help says.
std::vector<std::string> pages() {
  std::vector<std::string> out;
  for (const char* root : {"README.md", "docs", "docs/plans", "examples/custom_kernel"}) {
    if (!fs::exists(kSource / root)) continue;  // the sources are not here
    if (fs::is_regular_file(kSource / root)) out.push_back(root);
    if (!fs::is_directory(kSource / root)) continue;
    for (const auto& entry : fs::directory_iterator(kSource / root))
      if (entry.path().extension() == ".md")
        out.push_back(entry.path().lexically_relative(kSource).generic_string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

struct Commands {
  std::string page;
  int number;  // of the page's blocks of commands, from 1
  std::string mark, text;
};

std::ostream& operator<<(std::ostream& out, const Commands& c) {
  return out << c.page << ", block " << c.number;
}

std::vector<Commands> all_commands() {
  std::vector<Commands> out;
  for (const std::string& page : pages()) {
    int number = 0;
    for (const DocBlock& block : doc_blocks(page))
      if (block.language == "sh" || block.language == "python")
        out.push_back({page, ++number, block.mark, block.text});
  }
  return out;
}

// A folder like a checkout after `make build`. `cria` in its build folder is the real one with small sizes.
class Checkout {
 public:
  Checkout() {
    for (const auto& entry : fs::directory_iterator(kSource))
      if (entry.path().filename() != "build" && entry.path().filename() != ".git")
        fs::create_symlink(entry.path(), folder_ / entry.path().filename().string());
    const fs::path real = program_folder();
    build_ = "build/" + real.filename().string();
    fs::create_directories(folder_ / build_);
    for (const auto& entry : fs::directory_iterator(real))
      if (entry.path().filename() != "cria")
        fs::create_symlink(entry.path(), folder_ / build_ / entry.path().filename().string());
    const fs::path cria = folder_ / build_ / "cria";
    std::ofstream(cria) << "#!/bin/sh\nexec " << quoted((kSource / "tests/docs/small").string())
                        << ' ' << quoted(cria_program()) << " \"$@\"\n";
    fs::permissions(cria, fs::perms::owner_all);
    // Pages speak of build/cpu, whatever preset this is.
    if (const fs::path named = folder_ / "build/cpu"; !fs::exists(named))
      fs::create_directory_symlink(folder_ / build_, named);
  }

  CommandResult run(const std::string& commands) const {
    std::ofstream(folder_ / "commands") << "set -ex\n" << commands;
    return run_command("cd " + quoted(folder_.path().string()) +
                       " && export HOME=$PWD CRIA_CACHE=$PWD/tuned.json && bash commands");
  }

 private:
  TemporaryFolder folder_;
  fs::path build_;
};

// Where README says that the programs are.
std::string path_of_readme() {
  for (const DocBlock& block : doc_blocks("README.md")) {
    std::istringstream text(block.text);
    for (std::string line; std::getline(text, line);)
      if (line.starts_with("export PATH=")) return line + "\n";
  }
  ADD_FAILURE() << "README.md does not say export PATH=";
  return "";
}

class DocCommands : public testing::TestWithParam<Commands> {};

TEST_P(DocCommands, RunAsPrinted) {
  const Commands& block = GetParam();
  if (!block.mark.empty()) {
    ASSERT_TRUE(kReasons.contains(block.mark)) << block.page << " marks a block " << block.mark;
    GTEST_SKIP() << kReasons.at(block.mark);
  }
  const std::string path = block.page == "README.md" ? "" : path_of_readme();
  const CommandResult result = Checkout().run(path + block.text);
  EXPECT_TRUE(result.ok) << block.page << "\n" << result.output;
}

// Without the sources there are none.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DocCommands);
INSTANTIATE_TEST_SUITE_P(Pages, DocCommands, testing::ValuesIn(all_commands()),
                         [](const auto& info) {
                           std::string name = info.param.page.substr(0, info.param.page.rfind('.'));
                           std::replace_if(
                               name.begin(), name.end(),
                               [](unsigned char c) { return !std::isalnum(c); }, '_');
                           return name + "_" + std::to_string(info.param.number);
                         });

// Commands are not hidden from the test above as blocks of another language.
TEST(DocPages, BlocksHaveALanguage) {
  static const std::set<std::string> kLanguages = {"sh", "python", "cpp", "cmake", "text"};
  static const std::regex kCommand(R"((^|\n)\$? ?(cria|make|cmake|build/|tools/|bench/)\b.*)");
  for (const std::string& page : pages())
    for (const DocBlock& block : doc_blocks(page)) {
      const std::string where = page + ":" + std::to_string(block.line);
      EXPECT_TRUE(kLanguages.contains(block.language)) << where << ": " << block.language;
      EXPECT_FALSE(block.language == "text" && std::regex_search(block.text, kCommand)) << where;
    }
}

// What sentences name in backquotes: `cria COMMAND --option`, `make TARGET`, `build/cpu/PROGRAM`.
TEST(DocPages, NamedCommandsExist) {
  static const std::regex kQuoted("`((?:cria|make|build/cpu/\\w+)\\b[^`]*)`"),
      kOption(" (--?[a-z][-a-z0-9]*)"), kFences("```[^`]*```");
  const std::string makefile = read_text(kSource / "Makefile");
  const std::string programs =
      read_text(kSource / "bench/CMakeLists.txt") + read_text(kSource / "tests/CMakeLists.txt");
  int seen = 0;
  for (const std::string& page : pages()) {
    const std::string text = std::regex_replace(read_text(kSource / page), kFences, "");
    for (std::sregex_iterator it(text.begin(), text.end(), kQuoted), end; it != end; ++it) {
      std::string line = (*it)[1];
      std::replace(line.begin(), line.end(), '\n', ' ');
      std::istringstream words(line);
      std::string program, command;
      words >> program >> command;
      if (program == "make") {
        const bool target =
            !command.empty() && std::islower(static_cast<unsigned char>(command[0]));
        EXPECT_TRUE(!target || makefile.find("\n" + command + ":") != std::string::npos)
            << page << ": " << line;
      } else if (program.starts_with("build/")) {
        const std::string name = program.substr(program.rfind('/') + 1);
        EXPECT_TRUE(name == "cria" ||
                    std::regex_search(programs, std::regex("add_executable\\(" + name + "\\b")))
            << page << ": " << line;
      } else if (program == "cria" && !command.empty()) {
        const fs::path help =
            kSource / "docs/cli" / (command.starts_with("-") ? "cria.md" : command + ".md");
        ASSERT_TRUE(fs::exists(help)) << page << ": " << line;
        const std::string options = read_text(help);
        for (std::sregex_iterator option(line.begin(), line.end(), kOption); option != end;
             ++option)
          EXPECT_NE(options.find((*option)[1].str()), std::string::npos) << page << ": " << line;
      }
      ++seen;
    }
  }
  EXPECT_GT(seen, 50);
}

// What a page shows of a command's output is what it prints.
TEST(DocPages, ShownOutputIsWhatCriaPrints) {
  int seen = 0;
  for (const std::string& page : pages())
    for (const DocBlock& block : doc_blocks(page)) {
      if (block.kind != "run") continue;
      const std::string where = page + ":" + std::to_string(block.line);
      const CommandResult result =
          run_command("cd " + quoted(kSource.string()) +
                      " && PATH=" + quoted(program_folder().string()) + ":$PATH && " + block.name);
      EXPECT_EQ(block.text, result.output) << where << " is not what `" << block.name
                                           << "` prints: run tools/doc-outputs " << cria_program();
      ++seen;
    }
  EXPECT_GT(seen, 0);
}

}  // namespace
}  // namespace cria::test
