// How versions leave workers: what must be copied before, what is known of a worker that was told
// to clear one, and who waited for it. Invariants are checked after each step.
#include <gtest/gtest.h>

#include "tests/catalog/small_cluster.hpp"

namespace holdfast::testing_support {
namespace {

constexpr WorkerId kFirst(4U);  // the members of group 1, which fetches
constexpr WorkerId kSecond(6U);

struct Fetching : Small {
  // Group 1 fetches kOne; only the second member is filled.
  void fetch_half() {
    publish_all(kOne);
    workers[kFirst.index()].fills = false;
    fetch(GroupId(1U), 1, {}, now + seconds(20));
    run_for(milliseconds(100));
  }
  void fill_first() {
    fill(kFirst, workers[kFirst.index()].transfers.begin()->first);
    run_for(milliseconds(100));
  }
  void fetch_all() {
    publish_all(kOne);
    fetch(GroupId(1U), 1, {}, now + seconds(10));
    run_for(milliseconds(100));
  }
  void retain_one() {
    say(WorkerId(0U), AskRetain{next_call(), kOne, {1, Level::Host}, now + seconds(10)});
    run_for(milliseconds(100));
  }
};

TEST(CoordinatorClears, RetainedVersionsGoToHostMemoryBeforeTheyLeave) {
  Small cluster;
  cluster.publish_all(kOne);
  cluster.say(WorkerId(0U),
              AskRetain{cluster.next_call(), kOne, {1, Level::Host}, cluster.now + seconds(10)});
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.last_answer(WorkerId(0U)).safe, 1U);
  for (const WorkerId member : cluster.members(GroupId(0U))) {
    cluster.say(member, AskUnpublish{cluster.next_call(), kOne, cluster.now + seconds(10)});
  }
  cluster.run_for(seconds(1));
  EXPECT_EQ(cluster.last_answer(WorkerId(0U)).status, CallStatus::Ok);
  EXPECT_EQ(cluster.last_answer(WorkerId(2U)).status, CallStatus::Ok);
  EXPECT_TRUE(view_of(cluster, kOne).fetchable);
  EXPECT_EQ(view_of(cluster, kOne).safe, 1U);
  // Released, the copies go.
  cluster.say(WorkerId(0U), AskRelease{cluster.next_call(), kOne});
  cluster.run_for(seconds(1));
  EXPECT_FALSE(view_of(cluster, kOne).fetchable);
}

TEST(CoordinatorClears, WhoFailsToLeaveServesAgain) {
  Small cluster;
  cluster.publish_all(kOne);
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  cluster.workers[6].clears = false;
  cluster.say(WorkerId(6U), AskLeave{cluster.next_call(), cluster.now + seconds(5)});
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(view_of(cluster, kOne).hidden, std::vector{WorkerId(6U)});
  cluster.say(WorkerId(6U), ClearFailed{kOne, {WorkerId(4U)}});
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.last_answer(WorkerId(6U)).status, CallStatus::DrainTimeout);
  EXPECT_EQ(cluster.last_answer(WorkerId(6U)).who, std::vector{WorkerId(4U)});
  EXPECT_EQ(cluster.heard<Unhide>(WorkerId(6U)).size(), 1U);
  EXPECT_TRUE(view_of(cluster, kOne).hidden.empty());
}

TEST(CoordinatorClears, LeavingIsNoDeath) {
  Small cluster;
  cluster.publish_all(kOne);
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  cluster.say(WorkerId(6U), AskLeave{cluster.next_call(), cluster.now + seconds(5)});
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.last_answer(WorkerId(6U)).status, CallStatus::Ok);
  EXPECT_EQ(cluster.heard<LeaveNow>(WorkerId(6U)).size(), 1U);
  EXPECT_EQ(cluster.workers[4].generation, 2U);
}

TEST(CoordinatorClears, WhoLeavesWaitsForTheCopiesThatReplaceItsOwn) {
  Fetching cluster;
  cluster.publish_all(kOne);
  cluster.retain_one();
  ASSERT_EQ(view_of(cluster, kOne).safe, 1U);
  for (ScriptedWorker& worker : cluster.workers) worker.fills = false;
  cluster.say(WorkerId(0U), AskLeave{cluster.next_call(), cluster.now + seconds(5)});
  cluster.run_for(milliseconds(100));
  EXPECT_TRUE(cluster.heard<Clear>(WorkerId(0U)).empty());
  for (std::uint32_t w = 0; w < cluster.workers.size(); ++w) {
    const auto plans = cluster.workers[w].transfers;
    for (const auto& [plan, begin] : plans) cluster.fill(WorkerId(w), plan);
  }
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.heard<LeaveNow>(WorkerId(0U)).size(), 1U);
  EXPECT_TRUE(view_of(cluster, kOne).fetchable);
}

TEST(CoordinatorClears, ANoticeThatIsTooShortLeavesTheCopyWhereItIs) {
  Fetching cluster;
  cluster.publish_all(kOne);
  cluster.retain_one();
  for (ScriptedWorker& worker : cluster.workers) worker.fills = false;
  cluster.say(WorkerId(0U), AskLeave{cluster.next_call(), cluster.now + milliseconds(500)});
  cluster.run_for(seconds(1));
  EXPECT_EQ(cluster.last_answer(WorkerId(0U)).status, CallStatus::RetentionBlocked);
  EXPECT_TRUE(cluster.heard<Clear>(WorkerId(0U)).empty());
  EXPECT_TRUE(view_of(cluster, kOne).fetchable);
  EXPECT_EQ(view_of(cluster, kOne).safe, 1U);
}

// Two who leave may not each count on the other to stay.
TEST(CoordinatorClears, WhoLeavesTogetherLeavesAsMuchBehind) {
  Fetching cluster;
  cluster.fetch_all();
  cluster.retain_one();
  for (ScriptedWorker& worker : cluster.workers) worker.fills = false;
  for (const std::uint32_t w : {0U, 4U}) {  // all that have the first shard
    cluster.say(WorkerId(w), AskLeave{cluster.next_call(), cluster.now + seconds(5)});
  }
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.heard<Clear>(WorkerId(0U)).size() + cluster.heard<Clear>(WorkerId(4U)).size(),
            1U);
  EXPECT_EQ(view_of(cluster, kOne).holders.size(), 3U);
}

// A member that is about to give up the new version is no member that has it.
TEST(CoordinatorClears, AFetchWaitsForWhoGivesUpWhatItBrought) {
  Fetching cluster;
  cluster.fetch_half();
  cluster.workers[kSecond.index()].clears = false;
  cluster.say(kSecond, AskLeave{cluster.next_call(), cluster.now + seconds(5)});
  cluster.run_for(milliseconds(100));
  cluster.fill_first();
  EXPECT_FALSE(cluster.fetch_end(kFirst));
  // It could not: its version is offered again, and the group has it.
  cluster.say(kSecond, ClearFailed{kOne, {kFirst}});
  cluster.run_for(milliseconds(100));
  ASSERT_TRUE(cluster.fetch_end(kFirst));
  EXPECT_EQ(cluster.fetch_end(kFirst)->status, CallStatus::Ok);
  EXPECT_EQ(cluster.coordinator->groups()[1].runs, kOne);
}

// An unpublish that fails leaves the version hidden; whoever fetches it wants it again.
TEST(CoordinatorClears, AFetchOffersAgainWhatAnUnpublishLeftHidden) {
  Fetching cluster;
  cluster.fetch_all();
  cluster.workers[kSecond.index()].clears = false;
  cluster.say(kSecond, AskUnpublish{cluster.next_call(), kOne, cluster.now + seconds(5)});
  cluster.run_for(milliseconds(100));
  cluster.say(kSecond, ClearFailed{kOne, {kFirst}});
  cluster.run_for(milliseconds(100));
  ASSERT_EQ(view_of(cluster, kOne).hidden, std::vector{kSecond});
  cluster.fetch(GroupId(1U), 2, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.heard<Unhide>(kSecond).size(), 1U);
  EXPECT_TRUE(view_of(cluster, kOne).hidden.empty());
  ASSERT_EQ(cluster.heard<FetchDone>(kSecond).size(), 2U);
  EXPECT_EQ(cluster.fetch_end(kSecond)->status, CallStatus::Ok);
  EXPECT_EQ(cluster.coordinator->groups()[1].runs, kOne);
  // Nothing was read again.
  EXPECT_EQ(cluster.heard<Begin>(kSecond).size(), 1U);
}

// Unhide may come when the worker has cleared: until it answers nobody counts on its copy.
TEST(CoordinatorClears, WhatIsOfferedAgainCountsWhenTheWorkerHasSaidSo) {
  Fetching cluster;
  cluster.fetch_all();
  cluster.retain_one();
  ASSERT_EQ(view_of(cluster, kOne).safe, 2U);
  cluster.workers[kSecond.index()].clears = false;
  cluster.intercept = [](WorkerId, const CoordinatorMessage& message) {
    return std::holds_alternative<Tell>(message);
  };
  cluster.say(kSecond, AskLeave{cluster.next_call(), cluster.now + seconds(5)});
  cluster.run_for(milliseconds(100));
  cluster.say(kSecond, ClearFailed{kOne, {kFirst}});
  cluster.run_for(milliseconds(200));
  EXPECT_EQ(cluster.heard<Unhide>(kSecond).size(), 1U);
  EXPECT_EQ(view_of(cluster, kOne).safe, 1U);
  cluster.say(kSecond, Progress{0, kOne, BlockSet::full(4), true, 0});
  cluster.run_for(milliseconds(200));
  EXPECT_EQ(view_of(cluster, kOne).safe, 2U);
}

TEST(CoordinatorClears, WhoHadClearedBeforeItWasCalledOffIsFilledAnew) {
  Fetching cluster;
  cluster.fetch_half();
  cluster.workers[kSecond.index()].clears = false;
  const CallId leave = cluster.next_call();
  cluster.say(kSecond, AskLeave{leave, cluster.now + seconds(5)});
  cluster.run_for(milliseconds(100));
  cluster.intercept = [](WorkerId, const CoordinatorMessage& message) {
    return std::holds_alternative<Tell>(message);
  };
  cluster.say(kSecond, CallEnded{leave});
  cluster.run_for(milliseconds(100));
  ASSERT_EQ(cluster.heard<Unhide>(kSecond).size(), 1U);
  cluster.fill_first();
  EXPECT_FALSE(cluster.fetch_end(kFirst));
  cluster.say(kSecond, Cleared{kOne, 0});
  cluster.run_for(milliseconds(200));
  EXPECT_EQ(cluster.heard<Begin>(kSecond).size(), 2U);
  ASSERT_TRUE(cluster.fetch_end(kFirst));
  EXPECT_EQ(cluster.fetch_end(kFirst)->status, CallStatus::Ok);
}

// The worker answers Clear, but nobody waits for that.
TEST(CoordinatorClears, WhatNobodyReadsIsClearedWithoutWaiting) {
  Small cluster(6);
  cluster.publish_all(kOne);
  cluster.publish_all(kTwo, 2);
  cluster.fetch(GroupId(1U), 1, {kOne}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  ASSERT_EQ(cluster.coordinator->groups()[1].runs, kOne);
  cluster.workers[kSecond.index()].clears = false;
  cluster.fetch(GroupId(1U), 2, {kTwo}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.heard<Clear>(kSecond).size(), 1U);
  ASSERT_EQ(cluster.coordinator->groups()[1].runs, kTwo);
  EXPECT_EQ(view_of(cluster, kOne).holders, cluster.members(GroupId(0U)));
  // What it said of it before it heard Clear is not true any more.
  cluster.say(kSecond,
              Publish{cluster.next_call(), kOne, cluster.workers[2].holdings.at(kOne).digests,
                      cluster.now + seconds(1)});
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.last_answer(kSecond).status, CallStatus::BufferBusy);
  EXPECT_EQ(view_of(cluster, kOne).holders, cluster.members(GroupId(0U)));
  // The very version again: not before the buffer is known to be rid of it.
  cluster.fetch(GroupId(1U), 3, {kOne}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.heard<Begin>(kSecond).size(), 2U);
  EXPECT_EQ(cluster.coordinator->groups()[1].phase, "Clearing");
  cluster.say(kSecond, Cleared{kOne, 0});
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.heard<Begin>(kSecond).size(), 3U);
  EXPECT_EQ(cluster.coordinator->groups()[1].runs, kOne);
}

// A version that is wanted is not lost while a copy may not yet be gone.
TEST(CoordinatorClears, WhoDiesBeforeItHasClearedReleasesTheVersion) {
  Small cluster(6);
  cluster.publish_all(kOne);
  cluster.publish_all(kTwo, 2);
  cluster.fetch(GroupId(1U), 1, {kOne}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  cluster.workers[kFirst.index()].clears = cluster.workers[kSecond.index()].clears = false;
  cluster.fetch(GroupId(1U), 2, {kTwo}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  ASSERT_EQ(cluster.coordinator->groups()[1].runs, kTwo);
  // Group 2 wants the old version, and whoever else had it dies.
  cluster.workers[8].fills = cluster.workers[10].fills = false;
  cluster.fetch(GroupId(2U), 1, {kOne}, cluster.now + seconds(60));
  cluster.run_for(milliseconds(100));
  cluster.kill(WorkerId(0U));
  cluster.kill(WorkerId(2U));
  cluster.beat_for(seconds(4));
  EXPECT_FALSE(cluster.fetch_end(WorkerId(8U)));
  cluster.say(kFirst, Cleared{kOne, 0});
  cluster.kill(kSecond);
  cluster.beat_for(seconds(4));
  ASSERT_TRUE(cluster.fetch_end(WorkerId(8U)));
  EXPECT_EQ(cluster.fetch_end(WorkerId(8U))->status, CallStatus::VersionLost);
}

TEST(CoordinatorClears, AGroupRunsNothingThatAMemberHasCleared) {
  Fetching cluster;
  cluster.fetch_all();
  ASSERT_EQ(cluster.coordinator->groups()[1].runs, kOne);
  cluster.say(kSecond, Cleared{kOne, 0});
  cluster.run_for(milliseconds(100));
  EXPECT_FALSE(cluster.coordinator->groups()[1].runs);
}

// A plan is made with what its readers have: who has given that up meanwhile needs another.
TEST(CoordinatorClears, AReaderThatLostItsPartIsPlannedAnew) {
  Fetching cluster;
  cluster.publish_all(kOne);
  bool first = true;
  cluster.intercept = [&](WorkerId id, const CoordinatorMessage& message) {
    const bool asked = id == WorkerId(2U) && std::holds_alternative<GrantReads>(message);
    return asked && std::exchange(first, false);
  };
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(20));
  cluster.run_for(milliseconds(100));
  ASSERT_FALSE(first);
  ASSERT_TRUE(cluster.heard<Begin>(kSecond).empty());
  cluster.say(kSecond, Cleared{kOne, 0});
  cluster.run_for(milliseconds(200));
  ASSERT_EQ(cluster.heard<Begin>(kSecond).size(), 1U);
  EXPECT_NE(cluster.heard<Begin>(kSecond)[0].transfer->id,
            cluster.heard<Begin>(kFirst)[0].transfer->id);
  ASSERT_TRUE(cluster.fetch_end(kFirst));
  EXPECT_EQ(cluster.fetch_end(kFirst)->status, CallStatus::Ok);
}

}  // namespace
}  // namespace holdfast::testing_support
