// How an agent finds its coordinator again: greeting, epochs, incarnations, fencing.
#include "tests/catalog/agent_bench.hpp"

namespace holdfast::testing {
namespace {

constexpr Version kOne{1, 1};
constexpr Version kTwo{1, 2};

TEST(AgentSession, RepeatsHelloEverLessOftenUntilWelcome) {
  AgentBench bench;
  bench.step(AgentTimePassed{});
  EXPECT_EQ(bench.hellos.size(), 1U);
  // After 0.1, 0.3, 0.7, 1.5 and 2.5 s, then every second.
  bench.pass(milliseconds(3000));
  EXPECT_EQ(bench.hellos.size(), 6U);
  EXPECT_FALSE(bench.agent.connected());
  bench.welcome();
  EXPECT_TRUE(bench.agent.connected());
  EXPECT_EQ(bench.agent.epoch(), 1U);
  bench.pass(seconds(5));
  EXPECT_EQ(bench.hellos.size(), 6U);
}

TEST(AgentSession, SendsHeartbeatsWhenThereIsNothingElse) {
  AgentBench bench;
  bench.start();
  bench.frames.clear();
  bench.pass(seconds(1));
  EXPECT_EQ(bench.frames.size(), 4U);  // every 250 ms
  for (const WorkerFrame& frame : bench.frames) EXPECT_FALSE(frame.payload);
  bench.frames.clear();
  bench.call(WithdrawCall{kOne});
  ASSERT_EQ(bench.frames.size(), 1U);
  EXPECT_TRUE(bench.frames[0].payload);
}

// A Welcome that is doubled must not start its session anew, and one of an older epoch is nothing.
TEST(AgentSession, UsesEachKeyOnce) {
  AgentBench bench;
  bench.start(5);
  bench.call(WithdrawCall{kOne});
  ASSERT_EQ(bench.heard<AskWithdraw>().size(), 1U);
  bench.step(FromCoordinator{Welcome{5, 1, 1}});
  bench.step(FromCoordinator{Welcome{4, 1, 1}});
  bench.call(WithdrawCall{kTwo});
  EXPECT_EQ(bench.heard<AskWithdraw>().size(), 2U);  // in the same session
  EXPECT_EQ(bench.agent.epoch(), 5U);
}

// Not even while it looks for a coordinator.
TEST(AgentSession, DoesNotGoBackToAnOlderEpoch) {
  AgentBench bench;
  bench.start(5);
  bench.step(FromCoordinator{UnknownSession{0, 1}});
  bench.step(FromCoordinator{Welcome{4, 1, 1}});
  EXPECT_FALSE(bench.agent.connected());
  EXPECT_EQ(bench.agent.epoch(), 5U);
  bench.welcome(6);
  EXPECT_TRUE(bench.agent.connected());
}

TEST(AgentSession, RefusesFramesOfOtherEpochsAndIncarnations) {
  AgentBench bench;
  bench.start(5);
  bench.publish(kOne);
  const auto clear = std::make_shared<const CoordinatorMessage>(
      Clear{kOne, ClearReason::Fetch, OnDeadline::Fail, seconds(9)});
  const std::uint64_t next = bench.coordinator->received();
  for (const SessionKey key : {SessionKey{4, 1}, SessionKey{6, 1}, SessionKey{5, 2}}) {
    for (std::uint64_t sequence = 0; sequence < 4; ++sequence) {
      bench.step(FromCoordinator{CoordinatorFrame{key, sequence, next, clear}});
    }
  }
  EXPECT_EQ(bench.state(), HoldingState::Published);
}

TEST(AgentSession, SaysHelloAgainToWhoDoesNotKnowIt) {
  AgentBench bench;
  bench.start();
  bench.publish(kOne);
  bench.step(FromCoordinator{UnknownSession{0, 1}});
  ASSERT_EQ(bench.hellos.size(), 2U);
  EXPECT_FALSE(bench.agent.connected());
  const WorkerReport& report = *bench.hellos.back().report;
  ASSERT_EQ(report.holdings.size(), 1U);
  EXPECT_EQ(report.holdings[0].version, kOne);
  EXPECT_EQ(*report.holdings[0].digests, *bench_digests(1));
  EXPECT_EQ(report.epoch, 1U);
  // The same coordinator still has it: the session goes on.
  bench.step(FromCoordinator{Welcome{1, 1, 1}});
  EXPECT_TRUE(bench.agent.connected());
  bench.call(WithdrawCall{kOne});
  EXPECT_EQ(bench.heard<AskWithdraw>().size(), 1U);
}

TEST(AgentSession, IgnoresUnknownOfAnOlderEpochAndOtherSelf) {
  AgentBench bench;
  bench.start(5);
  bench.step(FromCoordinator{UnknownSession{4, 1}});
  bench.step(FromCoordinator{UnknownSession{5, 2}});
  EXPECT_TRUE(bench.agent.connected());
}

TEST(AgentSession, AsksOpenCallsAgainOfANewCoordinator) {
  AgentBench bench;
  bench.start();
  const CallId retain = bench.call(RetainCall{kOne, 2, Level::Host});
  const CallId fetch = bench.call(FetchCall{});
  bench.step(FromCoordinator{UnknownSession{0, 1}});
  bench.messages.clear();
  bench.welcome(2);
  ASSERT_EQ(bench.heard<AskRetain>().size(), 1U);
  EXPECT_EQ(bench.heard<AskRetain>()[0].call, retain);
  ASSERT_EQ(bench.heard<AskFetch>().size(), 1U);
  EXPECT_EQ(bench.heard<AskFetch>()[0].n, 1U);
  EXPECT_FALSE(bench.status(fetch));
}

// What happens between Hello and Welcome is not in the report: it is told afterwards.
TEST(AgentSession, TellsWhatHappenedAfterHello) {
  AgentBench bench;
  bench.start();
  bench.publish(kOne);
  const auto transfer = bench_transfer(1, kOne);
  bench.grant(transfer, WorkerId(2U));
  bench.say(EndReads{{{WorkerId(2U), 1, kOne, 1}}});
  bench.step(FromCoordinator{UnknownSession{0, 1}});
  EXPECT_EQ(bench.hellos.back().report->grants.size(), 1U);
  bench.step(ReaderRevoked{WorkerId(2U), kOne});
  bench.welcome(2);
  ASSERT_EQ(bench.heard<GrantsGone>().size(), 1U);
  EXPECT_EQ(bench.heard<GrantsGone>()[0].grants[0].reader, WorkerId(2U));
}

TEST(AgentSession, ANewEpochWithoutAskingMeansAnOldReport) {
  AgentBench bench;
  bench.start();
  bench.step(FromCoordinator{Welcome{2, 1, 1}});
  EXPECT_EQ(bench.hellos.size(), 2U);
  EXPECT_EQ(bench.agent.epoch(), 1U);
  bench.welcome(2);
  EXPECT_EQ(bench.agent.epoch(), 2U);
}

TEST(AgentFencing, TakesTheNextIncarnationAndEndsItsCalls) {
  AgentBench bench;
  bench.start();
  const CallId withdraw = bench.call(WithdrawCall{kOne});
  const CallId fetch = bench.call(FetchCall{});
  bench.step(FromCoordinator{FencedOff{1, 1, 6}});
  EXPECT_EQ(bench.agent.incarnation(), 7U);
  EXPECT_EQ(bench.status(withdraw), CallStatus::Fenced);
  EXPECT_EQ(bench.status(fetch), CallStatus::GroupBroken);
  EXPECT_EQ(bench.result(fetch).who, std::vector{kSelf});
  ASSERT_EQ(bench.hellos.size(), 2U);
  EXPECT_EQ(bench.hellos.back().incarnation, 7U);
  // Not again for what is said of the old self.
  bench.step(FromCoordinator{FencedOff{1, 1, 6}});
  EXPECT_EQ(bench.agent.incarnation(), 7U);
  bench.step(FromCoordinator{Welcome{1, 1, 1}});
  EXPECT_FALSE(bench.agent.connected());
}

TEST(AgentFencing, IsNotFencedByAnOlderEpoch) {
  AgentBench bench;
  bench.start(5);
  bench.step(FromCoordinator{FencedOff{4, 1, 1}});
  EXPECT_EQ(bench.agent.incarnation(), 1U);
}

// Nothing of the old self may go on when the new one introduces itself.
TEST(AgentFencing, ComesBackWhenReadersAndReadsAreGone) {
  AgentBench bench;
  bench.start();
  const auto transfer = bench_transfer(3, kTwo);
  const CallId fetch = bench.fetching(transfer);
  bench.blocks(3, 0, 5);
  bench.grant(transfer, WorkerId(2U));
  bench.step(FromCoordinator{FencedOff{1, 1, 1}});
  EXPECT_EQ(bench.commanded<StopTransfer>(), 1U);
  EXPECT_EQ(bench.commanded<RevokeReader>(), 1U);
  EXPECT_FALSE(bench.status(fetch));  // reads are open
  EXPECT_EQ(bench.hellos.size(), 1U);
  bench.step(TransferIdle{3});
  EXPECT_EQ(bench.status(fetch), CallStatus::GroupBroken);
  EXPECT_EQ(bench.hellos.size(), 1U);
  bench.step(ReaderRevoked{WorkerId(2U), kTwo});
  ASSERT_EQ(bench.hellos.size(), 2U);
  const WorkerReport& report = *bench.hellos.back().report;
  EXPECT_TRUE(report.grants.empty());
  EXPECT_TRUE(report.transfers.empty());
  ASSERT_EQ(report.holdings.size(), 1U);  // what was verified is as good as before
  EXPECT_EQ(report.holdings[0].verified.count(), 5U);
  ASSERT_TRUE(report.holdings[0].digests);
  EXPECT_EQ(report.holdings[0].digests->size(), kBlocks);
}

TEST(AgentFencing, WhatRanRunsNoMore) {
  AgentBench bench;
  bench.start();
  bench.run(kOne, 1);
  bench.step(FromCoordinator{FencedOff{1, 1, 1}});
  EXPECT_FALSE(bench.agent.runs());
  EXPECT_EQ(bench.state(), HoldingState::Complete);
}

}  // namespace
}  // namespace holdfast::testing
