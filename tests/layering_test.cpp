// The house rules that a grep can check: includes go down, backends are known to tile/ and runtime/
// only, and inline assembly has one home.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "support/places.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

// What each layer may include besides itself.
const std::map<std::string, std::set<std::string>> kBelow = {
    {"base", {}},
    {"runtime", {"base"}},
    {"tile", {"base", "runtime"}},
    {"kernels", {"base", "runtime", "tile"}},
    {"model", {"base", "runtime", "tile", "kernels"}},
    {"plans", {"base", "runtime", "tile", "kernels", "model"}},
    {"train", {"base", "runtime", "tile", "kernels", "model", "plans"}},
    {"lab", {"base", "runtime", "tile", "kernels", "model", "plans", "train"}},
    {"cli", {"base", "runtime", "tile", "kernels", "model", "plans", "train", "lab"}},
};

struct Line {
  std::string file;  // relative to src/
  int number;
  std::string text;  // without // comments

  std::string layer() const { return file.substr(0, file.find('/')); }
  bool is_under(const std::string& folder) const { return file.starts_with(folder); }
  std::string where() const { return "src/" + file + ":" + std::to_string(number); }
};

std::vector<Line> source_lines() {
  const fs::path root = test::in_repository("src");
  const std::set<std::string> extensions = {".h", ".cpp", ".cu", ".inc"};
  std::vector<Line> lines;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || !extensions.contains(entry.path().extension().string())) {
      continue;
    }
    const std::string file = entry.path().lexically_relative(root).generic_string();
    std::istringstream text(read_text(entry.path()));
    int number = 0;
    for (std::string line; std::getline(text, line);) {
      lines.push_back({file, ++number, line.substr(0, line.find("//"))});
    }
  }
  return lines;
}

// Empty when the line's include is allowed, else what is wrong with it.
std::string include_fault(const Line& line) {
  static const std::regex kInclude(R"re(^\s*#\s*include\s*"([^"]+)")re");
  std::smatch match;
  if (!std::regex_search(line.text, match, kInclude)) return "";
  const std::string target = match[1].str();
  const std::string to = target.substr(0, target.find('/'));
  const auto from = kBelow.find(line.layer());
  if (from == kBelow.end()) return "is in a folder that is no layer: " + line.layer();
  if (!kBelow.contains(to)) return "includes \"" + target + "\", which is not a path from src/";
  if (to == line.layer() || from->second.contains(to)) return "";
  return "includes upward: " + line.layer() + " -> " + to;
}

bool asks_for_backend(const Line& line) {
  static const std::regex kAsks(
      R"(^\s*#\s*(if|ifdef|ifndef|elif)\b.*\b(CRIA_TARGET\w*|CRIA_HAVE_CUDA|__CUDACC__|__CUDA_ARCH__|__NVCC__))");
  return !line.is_under("tile/") && !line.is_under("runtime/") &&
         std::regex_search(line.text, kAsks);
}

bool has_stray_assembly(const Line& line) {
  static const std::regex kAsm(R"(\b(asm|__asm__|__asm)\b\s*(volatile|__volatile__)?\s*[({])");
  return !line.is_under("tile/cuda/ptx/") && std::regex_search(line.text, kAsm);
}

class Layering : public test::WithSources {};

TEST_F(Layering, IncludesGoDown) {
  const auto lines = source_lines();
  ASSERT_GT(lines.size(), 100u) << "few sources under " << test::in_repository("src");
  for (const Line& line : lines) {
    const std::string fault = include_fault(line);
    EXPECT_TRUE(fault.empty()) << line.where() << ' ' << fault;
  }
}

TEST_F(Layering, OnlyTileAndRuntimeKnowBackends) {
  for (const Line& line : source_lines()) {
    EXPECT_FALSE(asks_for_backend(line))
        << line.where()
        << " asks for a backend; choose a stub file in CMake instead: " << line.text;
  }
}

TEST_F(Layering, AssemblyHasOneHome) {
  for (const Line& line : source_lines()) {
    EXPECT_FALSE(has_stray_assembly(line))
        << line.where() << " has inline assembly; move it to src/tile/cuda/ptx/: " << line.text;
  }
}

// The checks themselves can fail.
TEST_F(Layering, FaultsAreSeen) {
  EXPECT_NE(include_fault({"base/a.h", 1, "#include \"tile/tile.h\""}), "");
  EXPECT_NE(include_fault({"runtime/a.h", 1, "#include \"tile/tile.h\""}), "");
  EXPECT_NE(include_fault({"train/a.h", 1, "#include \"lab/measure.h\""}), "");
  EXPECT_NE(include_fault({"base/a.h", 1, "#include \"error.h\""}), "");
  EXPECT_NE(include_fault({"stray/a.h", 1, "#include \"base/error.h\""}), "");
  EXPECT_EQ(include_fault({"kernels/a.h", 1, "#include \"tile/tile.h\""}), "");
  EXPECT_EQ(include_fault({"base/a.h", 1, "#include <fmt/format.h>"}), "");

  EXPECT_TRUE(asks_for_backend({"kernels/a.h", 1, "#ifdef __CUDACC__"}));
  EXPECT_TRUE(asks_for_backend({"lab/a.h", 1, "#if defined(CRIA_TARGET_CUDA)"}));
  EXPECT_FALSE(asks_for_backend({"tile/a.h", 1, "#ifdef __CUDACC__"}));

  EXPECT_TRUE(has_stray_assembly({"tile/cuda/dot.h", 1, "asm volatile(\"bar.sync 0;\");"}));
  EXPECT_FALSE(has_stray_assembly({"tile/cuda/ptx/bar.h", 1, "asm(\"bar.sync 0;\");"}));
}

}  // namespace
}  // namespace cria
