#include "docs/quotes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>

#include "base/json.h"
#include "support/places.h"

namespace cria::test {
namespace {

std::string trimmed(const std::string& line) {
  const size_t begin = line.find_first_not_of(' ');
  return begin == std::string::npos ? "" : line.substr(begin);
}

// In the comments of C++ or CMake.
bool is_mark(const std::string& line, const std::string& name) {
  return trimmed(line) == "// [" + name + "]" || trimmed(line) == "# [" + name + "]";
}

std::string without_common_indent(const std::vector<std::string>& lines) {
  size_t indent = std::string::npos;
  for (const std::string& line : lines)
    if (!trimmed(line).empty()) indent = std::min(indent, line.size() - trimmed(line).size());
  std::string out;
  for (const std::string& line : lines)
    out += (trimmed(line).empty() ? "" : line.substr(indent)) + "\n";
  return out;
}

}  // namespace

std::vector<DocBlock> doc_blocks(const std::string& page) {
  static const std::regex kComment(
      R"(<!-- (quote) (\S+) (\S+) -->|<!-- (output) (\S+) -->|<!-- (run) (.+) -->)");
  std::istringstream text(read_text(in_repository(page)));
  std::vector<DocBlock> blocks;
  DocBlock next;
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    std::smatch match;
    if (inside && line == "```") {
      blocks.push_back(std::exchange(next, {}));
      inside = false;
    } else if (inside) {
      next.text += line + "\n";
    } else if (line.starts_with("```")) {
      const size_t space = std::min(line.find(' '), line.size());
      next.language = line.substr(3, space - 3);
      next.mark = trimmed(line.substr(space));
      next.line = number + 1;
      inside = true;
    } else if (std::regex_match(line, match, kComment)) {
      if (match[1].matched)
        next = {.kind = "quote", .file = match[2], .name = match[3]};
      else if (match[4].matched)
        next = {.kind = "output", .name = match[5]};
      else
        next = {.kind = "run", .name = match[7]};
    } else if (!line.empty()) {
      next = {};
    }
  }
  EXPECT_FALSE(inside) << page << ": a fenced block does not end";
  return blocks;
}

std::string doc_output(const std::string& page, const std::string& name) {
  for (const DocBlock& block : doc_blocks(page))
    if (block.kind == "output" && block.name == name) return block.text;
  ADD_FAILURE() << page << " has no <!-- output " << name << " -->";
  return "";
}

std::string quoted_region(const std::string& file, const std::string& name) {
  std::istringstream text(read_text(in_repository(file)));
  std::vector<std::string> lines;
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    if (inside && is_mark(line, "end")) return without_common_indent(lines);
    if (inside) lines.push_back(line);
    if (is_mark(line, name)) inside = true;
  }
  ADD_FAILURE() << file << " has no region [" << name << "] ... [end]";
  return "";
}

}  // namespace cria::test
