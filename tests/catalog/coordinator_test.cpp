// The coordinator beside workers that do as they are told. Invariants are checked after each step.
#include <gtest/gtest.h>

#include "tests/catalog/small_cluster.hpp"

namespace holdfast::testing_support {
namespace {

TEST(Coordinator, PublishedWhenEveryShardOfAGroupIs) {
  Small cluster;
  cluster.publish(WorkerId(0U), kOne);
  cluster.run_for(milliseconds(1));
  EXPECT_EQ(cluster.last_answer(WorkerId(0U)).status, CallStatus::Ok);
  EXPECT_FALSE(view_of(cluster, kOne).published);
  cluster.publish(WorkerId(2U), kOne);
  cluster.run_for(milliseconds(1));
  EXPECT_TRUE(view_of(cluster, kOne).published);
  EXPECT_TRUE(view_of(cluster, kOne).fetchable);
}

TEST(Coordinator, ASecondRootIsAConflictAndChangesNothing) {
  Small cluster;
  cluster.publish_all(kOne);
  cluster.publish(WorkerId(4U), kOne, 8);
  cluster.run_for(milliseconds(1));
  EXPECT_EQ(cluster.last_answer(WorkerId(4U)).status, CallStatus::VersionConflict);
  EXPECT_EQ(view_of(cluster, kOne).holders.size(), 2U);
  cluster.publish(WorkerId(4U), kOne);
  cluster.run_for(milliseconds(1));
  EXPECT_EQ(cluster.last_answer(WorkerId(4U)).status, CallStatus::Ok);
  EXPECT_EQ(view_of(cluster, kOne).holders.size(), 3U);
}

// One shard is left of a version, with the root of all: others must not be put beside it.
TEST(Coordinator, TheRootThatAHolderKnowsStands) {
  Small cluster;
  cluster.publish_all(kOne);
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  const Hash128 root = view_of(cluster, kOne).root;
  cluster.workers[6].holdings[kOne].digests = cluster.workers[2].holdings[kOne].digests;
  for (const std::uint32_t w : {0U, 2U, 4U}) {
    ++cluster.workers[w].incarnation;
    cluster.workers[w].holdings.clear();
  }
  cluster.restart_coordinator();
  cluster.hello_all();
  ASSERT_EQ(view_of(cluster, kOne).holders.size(), 1U);
  cluster.publish(WorkerId(0U), kOne, 8);
  cluster.run_for(milliseconds(1));
  EXPECT_EQ(cluster.last_answer(WorkerId(0U)).status, CallStatus::VersionConflict);
  EXPECT_FALSE(view_of(cluster, kOne).fetchable);
  cluster.publish(WorkerId(0U), kOne);
  cluster.run_for(milliseconds(1));
  EXPECT_EQ(cluster.last_answer(WorkerId(0U)).status, CallStatus::Ok);
  EXPECT_TRUE(view_of(cluster, kOne).fetchable);
  EXPECT_EQ(view_of(cluster, kOne).root, root);
}

// Who reads has the digests of all blocks: a publish that no coordinator has answered gives way.
TEST(Coordinator, WhatIsBeingReadStandsAgainstAPublishThatNobodyAnswered) {
  Small cluster;
  cluster.publish_all(kOne);
  cluster.workers[4].fills = cluster.workers[6].fills = false;
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(100));
  cluster.run_for(milliseconds(100));
  cluster.workers[0].holdings[kOne].digests =
      std::make_shared<const std::vector<std::uint64_t>>(4, 8);
  cluster.restart_coordinator();
  cluster.hello_all();
  EXPECT_EQ(view_of(cluster, kOne).holders, std::vector{WorkerId(2U)});
}

// Whoever was out of reach when a version got another root has to fetch it anew.
TEST(Coordinator, AReceivedCopyOfAnotherRootIsGivenUp) {
  Small cluster;
  cluster.publish_all(kOne);
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  const Hash128 before = view_of(cluster, kOne).root;
  for (const std::uint32_t w : {4U, 6U}) {
    cluster.workers[w].up = false;
    cluster.workers[w].holdings[kOne].root = before;
    cluster.workers[w].holdings[kOne].state = HoldingState::Complete;
  }
  cluster.restart_coordinator();
  for (const std::uint32_t w : {0U, 2U}) cluster.restart(WorkerId(w), false);
  cluster.run_for(seconds(3));
  for (const std::uint32_t w : {0U, 2U}) cluster.publish(WorkerId(w), kOne, 8);
  cluster.run_for(milliseconds(100));
  ASSERT_TRUE(view_of(cluster, kOne).fetchable);
  for (const std::uint32_t w : {4U, 6U}) {
    cluster.workers[w].up = true;
    cluster.hello(WorkerId(w));
  }
  cluster.run_for(milliseconds(100));
  for (const std::uint32_t w : {4U, 6U}) {
    EXPECT_EQ(cluster.heard<Clear>(WorkerId(w)).size(), 1U);
    EXPECT_TRUE(cluster.workers[w].holdings.empty());
  }
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(10));
  cluster.run_for(seconds(1));
  EXPECT_EQ(cluster.fetch_end(WorkerId(4U))->status, CallStatus::Ok);
  EXPECT_NE(cluster.fetch_end(WorkerId(4U))->root, before);
}

TEST(Coordinator, ABufferHoldsOneVersion) {
  Small cluster;
  cluster.publish_all(kOne);
  cluster.publish_all(kTwo);
  EXPECT_EQ(cluster.last_answer(WorkerId(0U)).status, CallStatus::BufferBusy);
}

TEST(Coordinator, NumbersRiseWithinALineage) {
  Small cluster;
  cluster.publish_all(kTwo);
  cluster.publish(WorkerId(4U), kOne);
  cluster.run_for(milliseconds(1));
  EXPECT_EQ(cluster.last_answer(WorkerId(4U)).status, CallStatus::VersionNotNew);
  cluster.publish(WorkerId(4U), {1, 1});
  cluster.run_for(milliseconds(1));
  EXPECT_EQ(cluster.last_answer(WorkerId(4U)).status, CallStatus::Ok);
}

TEST(Coordinator, AGroupFetchesAsOne) {
  Small cluster;
  cluster.publish_all(kOne);
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  for (const WorkerId member : cluster.members(GroupId(1U))) {
    ASSERT_TRUE(cluster.fetch_end(member));
    EXPECT_EQ(cluster.fetch_end(member)->status, CallStatus::Ok);
    EXPECT_EQ(cluster.fetch_end(member)->version, kOne);
  }
  EXPECT_EQ(cluster.coordinator->groups()[1].runs, kOne);
  EXPECT_EQ(cluster.coordinator->grants(), 0U);
  EXPECT_EQ(cluster.coordinator->open_transfers(), 0U);
  // The group is a holder now, and there is nothing newer.
  EXPECT_EQ(view_of(cluster, kOne).holders.size(), 4U);
  cluster.fetch(GroupId(1U), 2, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.fetch_end(WorkerId(4U))->status, CallStatus::NothingNewer);
}

TEST(Coordinator, ADecisionIsReplayedToWhoAsksAgain) {
  Small cluster(6);
  cluster.publish_all(kOne);
  cluster.workers[4].fills = false;
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  const auto first = cluster.heard<Decided>(WorkerId(4U));
  ASSERT_EQ(first.size(), 1U);
  cluster.publish_all(kTwo, 2);
  ASSERT_TRUE(view_of(cluster, kTwo).fetchable);
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  const auto again = cluster.heard<Decided>(WorkerId(4U));
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[1].decision.result.version, kOne);
}

TEST(Coordinator, DifferentArgumentsAreAMismatchForAll) {
  Small cluster;
  cluster.publish_all(kOne);
  FetchCall other;
  other.version = kOne;
  cluster.say(WorkerId(4U), AskFetch{1, 1, {}, cluster.now + seconds(10)});
  cluster.say(WorkerId(6U), AskFetch{1, 1, other, cluster.now + seconds(10)});
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.fetch_end(WorkerId(4U))->status, CallStatus::GroupMismatch);
  EXPECT_EQ(cluster.fetch_end(WorkerId(6U))->status, CallStatus::GroupMismatch);
}

TEST(Coordinator, WhoIsMissingIsNamedAtTheDeadline) {
  Small cluster;
  cluster.publish_all(kOne);
  cluster.say(WorkerId(4U), AskFetch{1, 1, {}, cluster.now + milliseconds(200)});
  cluster.run_for(milliseconds(300));
  ASSERT_TRUE(cluster.fetch_end(WorkerId(4U)));
  EXPECT_EQ(cluster.fetch_end(WorkerId(4U))->status, CallStatus::DeadlineExceeded);
  EXPECT_EQ(cluster.fetch_end(WorkerId(4U))->who, std::vector{WorkerId(6U)});
}

TEST(Coordinator, WhatIsOverForOneIsOverForAll) {
  Small cluster;
  cluster.publish_all(kOne);
  cluster.say(WorkerId(4U), AskFetch{3, 1, {}, cluster.now + seconds(10)});
  cluster.run_for(milliseconds(100));
  ASSERT_EQ(cluster.heard<FetchDone>(WorkerId(6U)).size(), 1U);
  EXPECT_EQ(cluster.heard<FetchDone>(WorkerId(6U))[0].n, 2U);
  cluster.say(WorkerId(6U), AskFetch{3, 1, {}, cluster.now + seconds(10)});
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.fetch_end(WorkerId(6U))->status, CallStatus::Ok);

  // A new coordinator makes the third one, of which nobody says that it ended, and goes on.
  cluster.workers[4].over = 5;
  cluster.restart_coordinator();
  cluster.beat_for(seconds(3));
  const auto done = cluster.heard<FetchDone>(WorkerId(6U));
  ASSERT_EQ(done.size(), 4U);
  EXPECT_EQ(done[2].n, 3U);
  EXPECT_EQ(done[2].result.status, CallStatus::Ok);
  EXPECT_EQ(done[3].n, 5U);
  EXPECT_EQ(cluster.workers[6].generation, 1U);
}

// Group 2 reads the old version from group 1 meanwhile.
TEST(Coordinator, InPlaceClearsTheOldVersionOnAllShardsFirst) {
  Small cluster(6);
  cluster.publish_all(kOne);
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  for (const WorkerId member : cluster.members(GroupId(0U))) {
    cluster.say(member, AskUnpublish{cluster.next_call(), kOne, cluster.now + seconds(1)});
  }
  cluster.run_for(milliseconds(10));
  EXPECT_EQ(cluster.last_answer(WorkerId(0U)).status, CallStatus::Ok);
  cluster.workers[8].fills = cluster.workers[10].fills = false;
  cluster.fetch(GroupId(2U), 1, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  ASSERT_EQ(cluster.workers[6].grants.size(), 1U);
  cluster.publish_all(kTwo);
  cluster.workers[6].clears = false;
  cluster.fetch(GroupId(1U), 2, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  EXPECT_TRUE(cluster.heard<Begin>(WorkerId(4U)).size() == 1U) << "began before all were cleared";
  cluster.workers[6].holdings.erase(kOne);
  cluster.say(WorkerId(6U), Cleared{kOne, 0});
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.fetch_end(WorkerId(4U))->version, kTwo);
  EXPECT_FALSE(view_of(cluster, kOne).fetchable);
}

TEST(Coordinator, ADeadMemberBreaksTheGroup) {
  Small cluster;
  cluster.publish_all(kOne);
  cluster.workers[4].fills = cluster.workers[6].fills = false;
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(100));
  cluster.run_for(milliseconds(100));
  cluster.kill(WorkerId(6U));
  cluster.beat_for(seconds(4));
  ASSERT_TRUE(cluster.fetch_end(WorkerId(4U)));
  EXPECT_EQ(cluster.fetch_end(WorkerId(4U))->status, CallStatus::GroupBroken);
  EXPECT_EQ(cluster.fetch_end(WorkerId(4U))->who, std::vector{WorkerId(6U)});
  EXPECT_EQ(cluster.workers[4].generation, 2U);
  EXPECT_EQ(cluster.coordinator->grants(), 0U);
  // With a new incarnation the next fetch counts from 1.
  cluster.workers[4].fills = cluster.workers[6].fills = true;
  cluster.restart(WorkerId(6U), false);
  cluster.run_for(milliseconds(10));
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(10));
  cluster.beat_for(seconds(1));
  EXPECT_EQ(cluster.fetch_end(WorkerId(4U))->status, CallStatus::Ok);
}

TEST(Coordinator, ReadersOfADeadSourceGetAnother) {
  Small cluster(8);
  cluster.publish_all(kOne, 0);
  cluster.publish_all(kOne, 1);
  for (const std::uint32_t w : {8U, 10U, 12U, 14U}) cluster.workers[w].fills = false;
  cluster.fetch(GroupId(2U), 1, {}, cluster.now + seconds(100));
  cluster.fetch(GroupId(3U), 1, {}, cluster.now + seconds(100));
  cluster.run_for(milliseconds(100));
  ASSERT_EQ(cluster.heard<Begin>(WorkerId(8U)).size(), 1U);
  const PlannedTransfer& transfer = *cluster.heard<Begin>(WorkerId(8U))[0].transfer;
  const WorkerId parent = transfer.plan->stripes[0].edges[0].parent;
  const WorkerId child = transfer.plan->stripes[0].edges[0].child;
  cluster.kill(parent);
  cluster.beat_for(seconds(4));
  const auto changes = cluster.heard<Change>(child);
  ASSERT_FALSE(changes.empty());
  EXPECT_NE(changes[0].edges[0].parent, parent);
}

TEST(Coordinator, WhoComesLateJoinsTheRunningPlan) {
  Small cluster(8);
  cluster.publish_all(kOne, 0);
  for (const std::uint32_t w : {4U, 6U, 12U, 14U}) cluster.workers[w].fills = false;
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(100));
  cluster.run_for(milliseconds(100));
  const auto first = cluster.heard<Begin>(WorkerId(4U));
  ASSERT_EQ(first.size(), 1U);
  cluster.fetch(GroupId(3U), 1, {}, cluster.now + seconds(100));
  cluster.run_for(milliseconds(100));
  const auto late = cluster.heard<Begin>(WorkerId(12U));
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late[0].transfer->id, first[0].transfer->id);
  EXPECT_FALSE(late[0].edges.empty());
  EXPECT_FALSE(late[0].sources.empty());
  EXPECT_EQ(late[0].transfer->shards[12], (ShardId{0, 0}));
  EXPECT_TRUE(cluster.heard<Change>(WorkerId(4U)).empty()) << "somebody was moved";
  for (const std::uint32_t w : {4U, 6U, 12U, 14U}) {
    cluster.fill(WorkerId(w), first[0].transfer->id);
  }
  cluster.run_for(milliseconds(100));
  for (const std::uint32_t w : {4U, 12U}) {
    ASSERT_TRUE(cluster.fetch_end(WorkerId(w)));
    EXPECT_EQ(cluster.fetch_end(WorkerId(w))->status, CallStatus::Ok);
  }
  EXPECT_EQ(cluster.coordinator->grants(), 0U);
}

TEST(Coordinator, ASlowSourceLosesReadersTwiceAtMost) {
  Small cluster(20);
  cluster.policy = Policy::Star;
  cluster.publish_all(kOne, 0);
  cluster.publish_all(kOne, 1);
  for (std::uint32_t w = 8; w < 40; w += 2) cluster.workers[w].fills = false;
  for (std::uint32_t g = 2; g < 10; ++g) {
    cluster.fetch(GroupId(g), 1, {}, cluster.now + seconds(100));
  }
  cluster.run_for(milliseconds(100));
  const auto begun = cluster.heard<Begin>(WorkerId(8U));
  ASSERT_EQ(begun.size(), 1U);
  const auto& edges = begun[0].transfer->plan->stripes[0].edges;
  const auto children = std::count_if(edges.begin(), edges.end(),
                                      [](const Edge& e) { return e.parent == WorkerId(0U); });
  ASSERT_EQ(children, 4);
  for (int round = 0; round < 5; ++round) {
    cluster.say(WorkerId(8U), SourceIsSlow{begun[0].transfer->id, StripeId(0U), WorkerId(0U)});
    cluster.run_for(milliseconds(100));
  }
  // Half of four, then half of two; the last one stays.
  std::size_t changes = 0;
  for (std::uint32_t w = 8; w < 40; w += 2) {
    changes += cluster.heard<Change>(WorkerId(w)).size();
  }
  EXPECT_EQ(changes, 3U);
}

// Jobs are name spaces: the same version of another job is another version.
TEST(Coordinator, JobsDoNotSeeEachOther) {
  ScriptedCluster cluster(1, 6, 2, 8);
  for (const WorkerId member : cluster.members(GroupId(1U))) {
    cluster.workers[member.index()].card.space = SpaceId(1U);
  }
  cluster.hello_all();
  for (const WorkerId member : cluster.members(GroupId(0U))) cluster.publish(member, kTwo);
  cluster.run_for(milliseconds(1));
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(10));
  cluster.fetch(GroupId(2U), 1, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.fetch_end(WorkerId(4U))->status, CallStatus::UnknownVersion);
  EXPECT_EQ(cluster.fetch_end(WorkerId(8U))->status, CallStatus::Ok);
  // Neither number nor root of one job binds the other.
  for (const WorkerId member : cluster.members(GroupId(1U))) cluster.publish(member, kOne, 8);
  cluster.run_for(milliseconds(1));
  EXPECT_EQ(cluster.last_answer(WorkerId(4U)).status, CallStatus::Ok);
  EXPECT_EQ(view_of(cluster, kOne).space, SpaceId(1U));
  EXPECT_EQ(cluster.coordinator->groups()[2].runs, kTwo);
}

// A joiner that dies before the plan has been changed for it leaves nothing behind.
TEST(Coordinator, AJoinerMayDieOnTheWay) {
  Small cluster(8);
  cluster.publish_all(kOne, 0);
  for (const std::uint32_t w : {4U, 6U, 12U, 14U}) cluster.workers[w].fills = false;
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(100));
  cluster.run_for(milliseconds(100));
  cluster.fetch(GroupId(3U), 1, {}, cluster.now + seconds(100));
  cluster.kill(WorkerId(12U));
  cluster.beat_for(seconds(4));
  EXPECT_EQ(cluster.fetch_end(WorkerId(14U))->status, CallStatus::GroupBroken);
  const PlanNumber plan = cluster.heard<Begin>(WorkerId(4U))[0].transfer->id;
  for (const std::uint32_t w : {4U, 6U}) cluster.fill(WorkerId(w), plan);
  cluster.beat_for(seconds(1));
  EXPECT_EQ(cluster.fetch_end(WorkerId(4U))->status, CallStatus::Ok);
  EXPECT_EQ(cluster.coordinator->grants(), 0U);
  EXPECT_EQ(cluster.coordinator->open_transfers(), 0U);
}

// The running plan ends while the planner is asked for a joiner and does not answer.
TEST(Coordinator, APlanThatWaitsForJoinersAloneEndsWithTheQuestion) {
  CoordinatorConfig config;
  config.plan_deadline = milliseconds(500);
  Small cluster(6, config);
  cluster.publish_all(kOne);
  cluster.workers[4].fills = cluster.workers[6].fills = false;
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  cluster.plans = false;
  cluster.fetch(GroupId(2U), 1, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  for (const std::uint32_t w : {4U, 6U}) {
    cluster.fill(WorkerId(w), cluster.workers[w].transfers.begin()->first);
  }
  cluster.run_for(milliseconds(100));
  ASSERT_EQ(cluster.coordinator->open_transfers(), 1U);
  cluster.plans = true;
  cluster.run_for(seconds(1));
  ASSERT_TRUE(cluster.fetch_end(WorkerId(8U)));
  EXPECT_EQ(cluster.fetch_end(WorkerId(8U))->status, CallStatus::Ok);
  EXPECT_EQ(cluster.coordinator->open_transfers(), 0U);
}

TEST(Coordinator, ALostVersionIsNamedOnlyWhenNobodyHasIt) {
  Small cluster;
  cluster.publish_all(kOne);
  cluster.workers[4].fills = cluster.workers[6].fills = false;
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(100));
  cluster.run_for(milliseconds(100));
  // The reader has everything of its shard already, and has not said so.
  cluster.workers[4].holdings[kOne].verified = BlockSet::full(4);
  cluster.kill(WorkerId(0U));
  cluster.beat_for(seconds(4));
  EXPECT_FALSE(cluster.fetch_end(WorkerId(4U)));
  cluster.kill(WorkerId(2U));
  cluster.beat_for(seconds(4));
  ASSERT_TRUE(cluster.fetch_end(WorkerId(4U)));
  EXPECT_EQ(cluster.fetch_end(WorkerId(4U))->status, CallStatus::VersionLost);
  EXPECT_EQ(cluster.fetch_end(WorkerId(4U))->lost, (std::vector<BlockSpan>{{BlockId(4U), 4}}));
}

TEST(Coordinator, WithdrawnWeightsAreNotFetched) {
  Small cluster;
  cluster.publish_all(kOne);
  cluster.workers[4].fills = false;
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(100));
  cluster.run_for(milliseconds(100));
  cluster.say(WorkerId(0U), AskWithdraw{cluster.next_call(), kOne});
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.fetch_end(WorkerId(4U))->status, CallStatus::Withdrawn);
  cluster.fetch(GroupId(1U), 2, {}, cluster.now + seconds(100));
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.fetch_end(WorkerId(4U))->status, CallStatus::UnknownVersion);
}

TEST(Coordinator, ANewCoordinatorGoesOnFromReports) {
  Small cluster;
  cluster.publish_all(kOne);
  cluster.workers[4].fills = cluster.workers[6].fills = false;
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(100));
  cluster.run_for(milliseconds(100));
  const Epoch before = cluster.coordinator->epoch();
  cluster.restart_coordinator();
  cluster.beat_for(seconds(3));
  EXPECT_FALSE(cluster.coordinator->rebuilding());
  EXPECT_GT(cluster.coordinator->epoch(), before);
  EXPECT_EQ(cluster.coordinator->open_transfers(), 1U);
  for (const std::uint32_t w : {4U, 6U}) {
    ASSERT_EQ(cluster.workers[w].transfers.size(), 1U);
    cluster.fill(WorkerId(w), cluster.workers[w].transfers.begin()->first);
  }
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.fetch_end(WorkerId(4U))->status, CallStatus::Ok);
  EXPECT_EQ(cluster.heard<Begin>(WorkerId(4U)).size(), 1U) << "planned twice";
  EXPECT_EQ(cluster.coordinator->grants(), 0U);
}

// The group that fetches does so once more.
void fetches_again(Small& cluster) {
  const std::size_t before = cluster.heard<FetchDone>(WorkerId(4U)).size();
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(10));
  cluster.beat_for(seconds(1));
  ASSERT_GT(cluster.heard<FetchDone>(WorkerId(4U)).size(), before);
  EXPECT_EQ(cluster.fetch_end(WorkerId(4U))->status, CallStatus::Ok);
}

// A worker that was cut off during a rebuild comes with the epoch that the new coordinator took
// too.
TEST(Coordinator, TwoCoordinatorsOfOneEpochAreToldApart) {
  Small cluster;
  cluster.publish_all(kOne);
  const Epoch first = cluster.coordinator->epoch();
  // Nobody of the old epoch speaks while the next coordinator rebuilds: it takes the same one.
  for (std::uint32_t w = 0; w < 4; ++w) cluster.workers[w].up = false;
  for (std::uint32_t w = 4; w < 8; ++w) {
    cluster.kill(WorkerId(w));
    cluster.workers[w].epoch = 0;
  }
  cluster.restart_coordinator();
  for (std::uint32_t w = 4; w < 8; ++w) cluster.restart(WorkerId(w), false);
  cluster.run_for(seconds(3));
  ASSERT_EQ(cluster.coordinator->epoch(), first);
  for (std::uint32_t w = 0; w < 4; ++w) cluster.workers[w].up = true;
  cluster.beat_for(seconds(5));
  EXPECT_GT(cluster.coordinator->epoch(), first);
  fetches_again(cluster);
}

// Nobody could reach it while it rebuilt, so that it knows of no epoch.
TEST(Coordinator, WhoKnowsALargerEpochMakesItStartAgain) {
  Small cluster;
  cluster.publish_all(kOne);
  cluster.restart_coordinator();
  cluster.beat_for(seconds(3));
  const Epoch known = cluster.coordinator->epoch();
  cluster.restart_coordinator();
  cluster.run_for(seconds(3));
  ASSERT_LT(cluster.coordinator->epoch(), known);
  cluster.beat_for(seconds(5));
  EXPECT_GT(cluster.coordinator->epoch(), known);
  fetches_again(cluster);
}

// A Hello that was under way for long says nothing of what its worker has done since.
TEST(Coordinator, AGreetingThatIsOutOfDateIsNoReport) {
  Small cluster;
  cluster.publish_all(kOne);
  ScriptedWorker& late = cluster.workers[0];
  const auto holdings = std::exchange(late.holdings, {});
  cluster.restart_coordinator();
  cluster.hello(WorkerId(0U));
  late.up = false;  // Welcome does not reach it
  cluster.hello_all();
  EXPECT_FALSE(view_of(cluster, kOne).fetchable);
  late.up = true;
  late.holdings = holdings;
  ++late.greeting;
  cluster.hello(WorkerId(0U));
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(late.incarnation, 2U) << "fenced, and back";
  EXPECT_TRUE(view_of(cluster, kOne).fetchable);
  // The old one may come once more.
  cluster.workers[0].incarnation = 1;
  cluster.hello(WorkerId(0U));
  cluster.run_for(milliseconds(100));
  EXPECT_TRUE(cluster.coordinator->alive(WorkerId(0U)));
}

// Its publishers are gone; half of it is with one that was being filled.
TEST(Coordinator, WhatIsBeingFilledWasPublished) {
  Small cluster;
  cluster.publish_all(kOne);
  cluster.workers[4].fills = false;
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  cluster.workers[6].holdings[kOne].state = HoldingState::Filling;
  cluster.workers[6].transfers.clear();
  cluster.restart_coordinator();
  for (const std::uint32_t w : {0U, 6U}) cluster.hello(WorkerId(w));
  cluster.run_for(seconds(3));
  EXPECT_EQ(view_of(cluster, kOne).holders.size(), 2U);
  EXPECT_TRUE(view_of(cluster, kOne).fetchable);
}

TEST(Coordinator, InstalledWaitsForSoManyGroups) {
  Small cluster(6);
  cluster.publish_all(kOne);
  AskInstalled ask{cluster.next_call(), kOne, view_of(cluster, kOne).root, 2,
                   cluster.now + seconds(5)};
  cluster.say(WorkerId(0U), ask);
  cluster.fetch(GroupId(1U), 1, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  const auto answers = cluster.heard<Answer>(WorkerId(0U)).size();
  cluster.fetch(GroupId(2U), 1, {}, cluster.now + seconds(10));
  cluster.run_for(milliseconds(100));
  EXPECT_EQ(cluster.heard<Answer>(WorkerId(0U)).size(), answers + 1);
  EXPECT_EQ(cluster.last_answer(WorkerId(0U)).status, CallStatus::Ok);
}

}  // namespace
}  // namespace holdfast::testing_support
