#include "base/table.h"

#include <algorithm>

#include "base/format.h"

namespace cria {
namespace {

// Columns a UTF-8 string takes on a terminal, one per code point.
size_t display_width(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) {
    fail_f("Table: a row of {} cells for {} columns", cells.size(), columns_.size());
  }
  rows_.push_back(std::move(cells));
}

void Table::add_rule() { rules_.push_back(rows_.size()); }

std::string Table::to_string() const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t width = display_width(columns_[c].header);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
  }

  std::string rule;
  for (size_t c = 0; c < widths.size(); ++c) rule += (c ? "  " : "") + std::string(widths[c], '-');

  std::string out;
  const auto add_line = [&](const auto& cell) {
    std::string line;
    for (size_t c = 0; c < widths.size(); ++c) {
      const std::string& text = cell(c);
      const std::string padding(widths[c] - display_width(text), ' ');
      line += c ? "  " : "";
      line += columns_[c].align == Align::left ? text + padding : padding + text;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };

  add_line([&](size_t c) -> const std::string& { return columns_[c].header; });
  out += rule + "\n";
  for (size_t r = 0; r < rows_.size(); ++r) {
    if (std::find(rules_.begin(), rules_.end(), r) != rules_.end()) out += rule + "\n";
    add_line([&](size_t c) -> const std::string& { return rows_[r][c]; });
  }
  return out;
}

}  // namespace cria
