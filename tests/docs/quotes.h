// A page of the docs as a list of fenced blocks, and the marked regions of source files they quote.
//
// A block is introduced by a comment, <!-- quote FILE NAME --> for the text between the comments
// [NAME] and [end] in FILE, <!-- output NAME --> for what a test sees, or <!-- run COMMAND --> for what a
// command of cria's prints. FILE is a path from the repository's root; indentation common to all lines of
// the region is taken off.
#pragma once

#include <string>
#include <vector>

namespace cria::test {

struct DocBlock {
  int line = 0;               // of its first line of text
  std::string language = {};  // the first word after the fence's backquotes
  std::string mark = {};      // the words after it
  std::string kind = {};      // "quote", "output", "run", or empty without a comment
  std::string file = {};      // of a quote
  std::string name = {};      // of what was run: the command
  std::string text = {};
};

std::vector<DocBlock> doc_blocks(const std::string& page);

// The page's block for this output; empty, with a failure, when there is none.
std::string doc_output(const std::string& page, const std::string& name);

// Empty, with a failure, when the file or the region is not there.
std::string quoted_region(const std::string& file, const std::string& name);

}  // namespace cria::test
