#include "base/error.h"

#include <gtest/gtest.h>

#include <string>

#include "base/format.h"

namespace cria {
namespace {

TEST(Error, CarriesItsMessage) {
  try {
    fail_f("{} rows of {}", 3, "x");
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "3 rows of x");
    return;
  }
  FAIL();
}

TEST(Error, ShowsControlCharactersOfWhatItQuotes) {
  EXPECT_STREQ(Error("tensor \"\x1b[2J\x7f\n\tz\u009b1m é\"").what(),
               "tensor \"\\x1b[2J\\x7f\\x0a\\x09z\\xc2\\x9b1m é\"");
}

TEST(Error, RequireThrowsOnlyWhenFalse) {
  EXPECT_NO_THROW(require(true, "fine"));
  EXPECT_THROW(require(false, "not fine"), Error);
}

}  // namespace
}  // namespace cria
