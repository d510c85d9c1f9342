#include "core/workload/updates.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

FetchRecord fetch(std::uint64_t number, std::int64_t requested, std::int64_t ended,
                  std::int64_t bound, bool completed = true) {
  FetchRecord made;
  made.version = {1, number};
  made.gpus = 8;
  made.requested = seconds(requested);
  made.ended = seconds(ended);
  made.bound = seconds(bound);
  made.completed = completed;
  return made;
}

TEST(Updates, AreCutWhereNobodyWaits) {
  // Version 1: [0,5), [3,8) are one, [8,9) begins when nobody waits; version 2 beside them.
  const std::vector<FetchRecord> fetches{fetch(1, 8, 9, 1), fetch(1, 3, 8, 2), fetch(2, 4, 6, 1),
                                         fetch(1, 0, 5, 3)};
  const auto updates = updates_of(fetches, {}, {});
  ASSERT_EQ(updates.size(), 3U);
  EXPECT_EQ(updates[0].version.number, 1U);
  EXPECT_EQ(updates[0].first_request, seconds(0));
  EXPECT_EQ(updates[0].makespan(), seconds(8));
  EXPECT_EQ(updates[0].completed, 2U);
  EXPECT_EQ(updates[0].bound, seconds(5));  // the second: 3 s later, 2 s at least
  EXPECT_EQ(updates[0].bound_kind, BoundKind::Nominal);
  EXPECT_EQ(updates[1].version.number, 2U);
  EXPECT_EQ(updates[1].bound_kind, BoundKind::Static);
  EXPECT_EQ(updates[2].first_request, seconds(8));
  EXPECT_EQ(updates[2].bound, seconds(1));
  const UpdateSums sums = sums_of(updates);
  EXPECT_EQ(sums.makespan, seconds(8 + 2 + 1));
  EXPECT_EQ(sums.bound, seconds(5 + 1 + 1));
  EXPECT_DOUBLE_EQ(*sums.fraction(), 7.0 / 11);
}

TEST(Updates, CountWhatCompletedAlone) {
  // The failed one waits until 20, which keeps the update open, but sets neither time nor bound.
  const std::vector<FetchRecord> fetches{fetch(1, 0, 4, 3), fetch(1, 1, 20, 15, false),
                                         fetch(1, 10, 16, 2)};
  const auto updates = updates_of(fetches, {}, {});
  ASSERT_EQ(updates.size(), 1U);
  EXPECT_EQ(updates[0].makespan(), seconds(16));
  EXPECT_EQ(updates[0].ended, seconds(20));
  EXPECT_EQ(updates[0].bound, seconds(12));
  EXPECT_EQ(updates[0].completed, 2U);
  EXPECT_EQ(updates[0].failed, 1U);
}

TEST(Updates, WithoutACompletionHaveNoMakespan) {
  const std::vector<FetchRecord> fetches{fetch(1, 0, 4, 3, false)};
  const auto updates = updates_of(fetches, {}, {});
  ASSERT_EQ(updates.size(), 1U);
  EXPECT_FALSE(updates[0].makespan());
  EXPECT_FALSE(sums_of(updates).fraction());
}

TEST(Updates, TakeJointBoundsOfTheirOwn) {
  const std::vector<FetchRecord> fetches{fetch(1, 0, 10, 3), fetch(1, 2, 9, 3),
                                         fetch(1, 20, 29, 3)};
  const std::vector<JointBound> joint{{{1, 1}, seconds(2), seconds(7)},   // 2 + 7
                                      {{1, 1}, seconds(20), seconds(4)},  // of the second update
                                      {{1, 2}, seconds(0), seconds(99)}};
  const auto updates = updates_of(fetches, joint, {});
  ASSERT_EQ(updates.size(), 2U);
  EXPECT_EQ(updates[0].bound, seconds(9));
  EXPECT_EQ(updates[1].bound, seconds(4));
}

TEST(Updates, AFaultMakesTheBoundNominal) {
  const std::vector<FetchRecord> fetches{fetch(1, 0, 10, 3), fetch(1, 0, 9, 3),
                                         fetch(2, 20, 29, 3)};
  const std::vector<Time> faults{seconds(5)};
  const auto updates = updates_of(fetches, {}, faults);
  EXPECT_EQ(updates[0].bound_kind, BoundKind::Nominal);
  EXPECT_EQ(updates[1].bound_kind, BoundKind::Static);
}

TEST(Updates, OfFetchesThatTakeNoTimeAreOne) {
  const std::vector<FetchRecord> fetches{fetch(1, 3, 3, 0), fetch(1, 3, 3, 0)};
  EXPECT_EQ(updates_of(fetches, {}, {}).size(), 1U);
}

TEST(FetchStall, CountsRolloutsThatWaitInPlace) {
  std::vector<FetchRecord> fetches{fetch(1, 0, 10, 5), fetch(1, 2, 6, 3), fetch(1, 0, 7, 7, false),
                                   fetch(1, 0, 7, 7), fetch(1, 0, 7, 7)};
  fetches[3].in_place = false;
  fetches[4].generates = false;
  const FetchStall stall = fetch_stall(fetches);
  EXPECT_DOUBLE_EQ(stall.waited.seconds(), 8 * 14);
  EXPECT_DOUBLE_EQ(stall.bound.seconds(), 8 * 8);
  EXPECT_DOUBLE_EQ(*stall.fraction(), 8.0 / 14);
  EXPECT_FALSE(fetch_stall({}).fraction());
}

}  // namespace
}  // namespace holdfast
