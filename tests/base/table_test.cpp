#include "base/table.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace cria {
namespace {

TEST(Table, AlignsColumns) {
  Table table({{"kernel", Table::Align::left}, {"time [µs]"}});
  table.add_row({"rmsnorm", "12.50"});
  table.add_rule();
  table.add_row({"x", "1.25"});
  EXPECT_EQ(table.to_string(),
            "kernel   time [µs]\n"
            "-------  ---------\n"
            "rmsnorm      12.50\n"
            "-------  ---------\n"
            "x             1.25\n");
}

TEST(Table, EmptyShowsItsHeader) { EXPECT_EQ(Table({{"a"}, {"b"}}).to_string(), "a  b\n-  -\n"); }

TEST(Table, RowsMustFit) {
  Table table({{"a"}, {"b"}});
  EXPECT_THROW(table.add_row({"1"}), Error);
}

}  // namespace
}  // namespace cria
