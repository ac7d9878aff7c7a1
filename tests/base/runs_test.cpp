#include "base/runs.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace cria {
namespace {

// Rows at a pitch; heads of rows; heads within rows; runs that touch, some and all.
const std::vector<Runs> kRuns = {
    {.outer = 1, .middle = 5, .inner = 3, .outer_step = 0, .middle_step = 8},
    {.outer = 3, .middle = 2, .inner = 3, .outer_step = 32, .middle_step = 8},
    {.outer = 4, .middle = 3, .inner = 5, .outer_step = 24, .middle_step = 8},
    {.outer = 3, .middle = 2, .inner = 8, .outer_step = 24, .middle_step = 8},
    {.outer = 3, .middle = 2, .inner = 8, .outer_step = 16, .middle_step = 8},
    {.inner = 7},
    {}};

// Where each element lies, by its place in the file; what each() says is counted by hand here.
std::map<int64_t, int64_t> places_of(const Runs& r) {
  std::map<int64_t, int64_t> out;
  for (int64_t o = 0; o < r.outer; ++o)
    for (int64_t m = 0; m < r.middle; ++m)
      for (int64_t i = 0; i < r.inner; ++i)
        out[(o * r.middle + m) * r.inner + i] = o * r.outer_step + m * r.middle_step + i;
  return out;
}

TEST(Runs, EachAndItsPartsCoverEveryElementOnceInOrder) {
  for (const Runs& runs : kRuns) {
    const auto want = places_of(runs);
    const int64_t extent = want.empty() ? 0 : want.rbegin()->second + 1;
    EXPECT_EQ(runs.extent(), extent);
    for (int64_t part = 1; part <= extent + 1; ++part) {
      std::map<int64_t, int64_t> got;
      int64_t next = 0;
      for (int64_t begin = 0; begin < extent; begin += part)
        runs.each_within(begin, begin + part, [&](int64_t place, int64_t first, int64_t count) {
          EXPECT_GT(count, 0);
          EXPECT_TRUE(place >= begin && place + count <= begin + part) << place;
          EXPECT_EQ(first, next);
          next = first + count;
          for (int64_t i = 0; i < count; ++i) got[first + i] = place + i;
        });
      EXPECT_EQ(got, want) << part;
    }
    std::map<int64_t, int64_t> got;
    runs.each([&](int64_t place, int64_t first, int64_t count) {
      for (int64_t i = 0; i < count; ++i) got[first + i] = place + i;
    });
    EXPECT_EQ(got, want);
  }
}

TEST(Runs, WhatLiesInGapsOrOutsideIsNothing) {
  int calls = 0;
  const auto count = [&](int64_t, int64_t, int64_t) { ++calls; };
  kRuns[0].each_within(3, 8, count);
  kRuns[0].each_within(35, 100, count);
  kRuns[0].each_within(-9, 0, count);
  kRuns[0].each_within(4, 4, count);
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace cria
