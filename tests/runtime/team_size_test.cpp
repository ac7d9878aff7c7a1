#include "runtime/team_size.h"

#include <gtest/gtest.h>

namespace cria {
namespace {

using namespace std::chrono_literals;

class TeamSizeTest : public ::testing::Test {
 protected:
  // The team after a wait that ends `later`.
  int after(TeamSize::Duration later, TeamSize::Duration waited) {
    now += later;
    team.lost(waited, now);
    return team.size();
  }
  int at(TeamSize::Duration later) { return team.size_at(now += later); }

  TeamSize team{4};
  TeamSize::Time now{1h};
};

TEST_F(TeamSizeTest, WaitsThatAreShortOrRareChangeNothing) {
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(after(1ms, 80us), 4) << "8 % of the time";
  EXPECT_EQ(after(1s, 2ms), 4);
  EXPECT_EQ(after(20ms, 2ms), 4);
  EXPECT_FALSE(team.reduced());
}

TEST_F(TeamSizeTest, WaitsThatTakeMoreThanAShareOfTheTimeCostAWorkerEach) {
  int waits = 0;
  while (after(1ms, 300us) == 4) ASSERT_LT(++waits, 100);
  EXPECT_GT(waits, 5) << "patience";
  EXPECT_EQ(team.size(), 3);
  EXPECT_EQ(after(3ms, 3ms), 2);
  EXPECT_EQ(after(3ms, 3ms), 1);
  EXPECT_EQ(after(3ms, 3ms), 1) << "the caller is always there";
}

TEST_F(TeamSizeTest, ComesBackWhenTheMachineIsQuiet) {
  while (team.size() > 1) after(3ms, 3ms);
  now += TeamSize::kLongest;
  EXPECT_EQ(at(0ms), 2);
  EXPECT_EQ(at(TeamSize::kLongest), 3);
  EXPECT_EQ(at(TeamSize::kLongest), 4);
  EXPECT_FALSE(team.reduced());
}

// Trials that fail at once become rare, so that they cost little; one that fails late does not
// count against the next.
TEST_F(TeamSizeTest, TrialsThatFailBecomeRare) {
  const auto wait_for_trial = [&] {
    const auto start = now;
    while (at(1ms) < 4) {
    }
    return now - start;
  };
  after(1s, 3ms);
  EXPECT_EQ(wait_for_trial(), TeamSize::kShortest);
  after(5ms, 3ms);
  EXPECT_EQ(wait_for_trial(), 2 * TeamSize::kShortest);
  for (int i = 0; i < 10; ++i) {
    after(5ms, 3ms);
    wait_for_trial();
  }
  after(5ms, 3ms);
  EXPECT_EQ(wait_for_trial(), TeamSize::kLongest);
  after(2 * TeamSize::kLongest, 3ms);
  EXPECT_EQ(wait_for_trial(), TeamSize::kShortest);
}

}  // namespace
}  // namespace cria
