// A text table for the terminal: a header, aligned columns, optional rules between groups of rows.
#pragma once

#include <string>
#include <vector>

namespace cria {

class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string header;  // with the unit, e.g. "time [us]"
    Align align = Align::right;
  };

  explicit Table(std::vector<Column> columns);

  // One cell per column.
  void add_row(std::vector<std::string> cells);
  // A rule below the rows so far.
  void add_rule();

  std::string to_string() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> rules_;  // row indices a rule stands before
};

}  // namespace cria
