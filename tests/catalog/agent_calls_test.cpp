// The calls of an agent's user: each rule of agent.hpp about buffers, drains and ends.
#include "tests/catalog/agent_bench.hpp"

namespace holdfast::testing {
namespace {

constexpr Version kOne{1, 1};
constexpr Version kTwo{1, 2};
constexpr WorkerId kReader(2U);

// --- Publish -------------------------------------------------------------------------------------

TEST(AgentPublish, DigestsThenTells) {
  AgentBench bench;
  bench.start();
  const CallId id = bench.call(PublishCall{kOne});
  EXPECT_EQ(bench.commanded<DigestSlot>(), 1U);
  EXPECT_TRUE(bench.heard<Publish>().empty());
  EXPECT_TRUE(bench.empty());
  bench.step(SlotDigested{0, bench_digests(4)});
  ASSERT_EQ(bench.heard<Publish>().size(), 1U);
  EXPECT_EQ(*bench.heard<Publish>()[0].digests, *bench_digests(4));
  EXPECT_FALSE(bench.status(id));
  CallResult ok;
  ok.root = {3, 4};
  bench.say(Answer{id, ok});
  EXPECT_EQ(bench.status(id), CallStatus::Ok);
  EXPECT_EQ(bench.agent.holdings()[0]->root, (Hash128{3, 4}));
}

TEST(AgentPublish, TheBufferIsBusy) {
  AgentBench bench;
  bench.start();
  const CallId first = bench.call(PublishCall{kOne});
  EXPECT_EQ(bench.status(bench.call(PublishCall{kOne})), CallStatus::BufferBusy);
  EXPECT_EQ(bench.status(bench.call(PublishCall{kTwo})), CallStatus::BufferBusy);
  EXPECT_EQ(bench.status(bench.call(FetchCall{})), CallStatus::BufferBusy);
  bench.step(SlotDigested{0, bench_digests()});
  EXPECT_EQ(bench.status(bench.call(PublishCall{kTwo})), CallStatus::BufferBusy);
  bench.say(Answer{first, {}});
  EXPECT_EQ(bench.status(bench.call(PublishCall{kTwo})), CallStatus::BufferBusy);
  const CallId again = bench.call(PublishCall{kOne});  // the same once more is no harm
  bench.step(SlotDigested{0, bench_digests()});
  bench.say(Answer{again, {}});
  EXPECT_EQ(bench.status(again), CallStatus::Ok);
}

TEST(AgentPublish, WhatIsRefusedIsNotThere) {
  for (const CallStatus status :
       {CallStatus::VersionConflict, CallStatus::VersionNotNew, CallStatus::Withdrawn}) {
    AgentBench bench;
    bench.start();
    const CallId id = bench.call(PublishCall{kOne});
    bench.step(SlotDigested{0, bench_digests()});
    CallResult no;
    no.status = status;
    bench.say(Answer{id, no});
    EXPECT_EQ(bench.status(id), status);
    EXPECT_TRUE(bench.empty());
  }
}

TEST(AgentPublish, EndsAtItsDeadline) {
  AgentBench bench;
  bench.start();
  const CallId slow = bench.call(PublishCall{kOne}, seconds(1));
  bench.pass(seconds(1));
  EXPECT_EQ(bench.status(slow), CallStatus::DeadlineExceeded);
  // Its digests come late: they are nobody's, and until then the memory is being read.
  EXPECT_EQ(bench.status(bench.call(PublishCall{kTwo})), CallStatus::BufferBusy);
  bench.step(SlotDigested{0, bench_digests()});
  EXPECT_TRUE(bench.empty());
  EXPECT_TRUE(bench.heard<Publish>().empty());
  bench.publish(kTwo);
}

// --- Unpublish -----------------------------------------------------------------------------------

// A coordinator may have it or not, and other bytes under its number: it is asked until one says.
TEST(AgentPublish, WhatEndedUnheardIsAskedForAgain) {
  for (const bool refused : {true, false}) {
    AgentBench bench;
    bench.step(AgentTimePassed{});
    const CallId id = bench.call(PublishCall{kOne}, seconds(1));
    bench.step(SlotDigested{bench.last<DigestSlot>().slot, bench_digests()});
    bench.pass(seconds(1));
    ASSERT_EQ(bench.status(id), CallStatus::CoordinatorUnreachable);
    bench.welcome(1);
    ASSERT_EQ(bench.heard<Publish>().size(), 1U);
    EXPECT_EQ(bench.heard<Publish>()[0].version, kOne);
    bench.step(FromCoordinator{UnknownSession{1, 1}});
    bench.welcome(2);
    ASSERT_EQ(bench.heard<Publish>().size(), 2U);
    CallResult result;
    result.status = refused ? CallStatus::VersionConflict : CallStatus::Ok;
    result.root = {1, 2};
    bench.say(Answer{bench.heard<Publish>()[1].call, result});
    EXPECT_EQ(bench.empty(), refused);
    if (!refused) {
      EXPECT_EQ(bench.agent.holdings()[0]->root, (Hash128{1, 2}));
    }
    bench.step(FromCoordinator{UnknownSession{2, 1}});
    bench.welcome(3);
    EXPECT_EQ(bench.heard<Publish>().size(), 2U);
  }
}

TEST(AgentUnpublish, HidesDrainsAndThenReturns) {
  AgentBench bench;
  bench.start();
  bench.publish(kOne);
  const auto transfer = bench_transfer(1, kOne);
  bench.grant(transfer, kReader);
  const CallId id = bench.call(UnpublishCall{kOne});
  ASSERT_EQ(bench.heard<AskUnpublish>().size(), 1U);
  EXPECT_EQ(bench.state(), HoldingState::Published);  // retention may still need it
  bench.say(Clear{kOne, ClearReason::Unpublish, OnDeadline::Fail, bench.now + seconds(9)});
  EXPECT_EQ(bench.state(), HoldingState::Hidden);
  EXPECT_TRUE(bench.heard<Cleared>().empty());
  // No new reader gets in.
  bench.say(GrantReads{transfer, {{WorkerId(3U), 1, {}}}});
  ASSERT_EQ(bench.heard<Granted>().size(), 2U);
  EXPECT_EQ(bench.heard<Granted>()[1].refused, std::vector{WorkerId(3U)});
  EXPECT_EQ(bench.agent.grants().size(), 1U);
  bench.say(EndReads{{{kReader, 1, kOne, 1}}});
  EXPECT_TRUE(bench.heard<Cleared>().empty());  // the transport has not confirmed
  bench.step(ReaderRevoked{kReader, kOne});
  ASSERT_EQ(bench.heard<Cleared>().size(), 1U);
  EXPECT_TRUE(bench.empty());
  EXPECT_FALSE(bench.status(id));
  bench.say(Answer{id, {}});
  EXPECT_EQ(bench.status(id), CallStatus::Ok);
  EXPECT_EQ(bench.result(id).revoked, 0U);
}

TEST(AgentUnpublish, FailsNamingReadersAndStaysHidden) {
  AgentBench bench;
  bench.start();
  bench.publish(kOne);
  bench.grant(bench_transfer(1, kOne), WorkerId(3U));
  bench.grant(bench_transfer(2, kOne), kReader);
  const CallId id = bench.call(UnpublishCall{kOne});
  bench.say(Clear{kOne, ClearReason::Unpublish, OnDeadline::Fail, bench.now + seconds(1)});
  bench.deaf = true;  // the coordinator is gone: it is not needed
  bench.pass(seconds(1));
  EXPECT_EQ(bench.status(id), CallStatus::DrainTimeout);
  EXPECT_EQ(bench.result(id).who, (std::vector{kReader, WorkerId(3U)}));
  EXPECT_EQ(bench.state(), HoldingState::Hidden);
  EXPECT_EQ(bench.agent.grants().size(), 2U);
  EXPECT_EQ(bench.commanded<RevokeReader>(), 0U);
}

TEST(AgentUnpublish, RevokesAtTheDeadlineAndWaitsForTheTransport) {
  AgentBench bench;
  bench.start();
  bench.publish(kOne);
  bench.grant(bench_transfer(1, kOne), WorkerId(3U));
  bench.grant(bench_transfer(2, kOne), kReader);
  const CallId id = bench.call(UnpublishCall{kOne, OnDeadline::Revoke});
  bench.say(Clear{kOne, ClearReason::Unpublish, OnDeadline::Fail, bench.now + seconds(1)});
  bench.pass(seconds(1));
  EXPECT_EQ(bench.commanded<RevokeReader>(), 2U);
  bench.step(ReaderRevoked{kReader, kOne});
  bench.pass(seconds(20));  // far beyond the call's deadline
  EXPECT_FALSE(bench.status(id));
  EXPECT_TRUE(bench.heard<Cleared>().empty());
  bench.step(ReaderRevoked{WorkerId(3U), kOne});
  ASSERT_EQ(bench.heard<Cleared>().size(), 1U);
  EXPECT_EQ(bench.heard<Cleared>()[0].revoked, 2U);
  EXPECT_EQ(bench.status(id), CallStatus::Ok);  // its time is over: nobody else is waited for
  EXPECT_EQ(bench.result(id).revoked, 2U);
}

// Before it is asked to clear, a worker cannot know whether its copy is needed.
TEST(AgentUnpublish, WithoutACoordinatorItEndsNamed) {
  AgentBench bench;
  bench.start();
  bench.publish(kOne);
  bench.step(FromCoordinator{UnknownSession{0, 1}});
  const CallId id = bench.call(UnpublishCall{kOne, OnDeadline::Revoke}, seconds(2));
  bench.pass(seconds(2));
  EXPECT_EQ(bench.status(id), CallStatus::CoordinatorUnreachable);
  EXPECT_EQ(bench.state(), HoldingState::Published);
}

TEST(AgentUnpublish, DrainsWithoutTheCoordinatorOnceItIsCleared) {
  AgentBench bench;
  bench.start();
  bench.publish(kOne);
  const CallId id = bench.call(UnpublishCall{kOne}, seconds(2));
  bench.deaf = true;
  bench.say(Clear{kOne, ClearReason::Unpublish, OnDeadline::Fail, bench.now + seconds(1)});
  EXPECT_TRUE(bench.empty());
  bench.pass(seconds(2));
  EXPECT_EQ(bench.status(id), CallStatus::Ok);
}

// The coordinator knows of no such holder: it answers at once, and the worker drains by itself.
TEST(AgentUnpublish, OkWithoutClearStillDrains) {
  AgentBench bench;
  bench.start();
  bench.publish(kOne);
  bench.grant(bench_transfer(1, kOne), kReader);
  const CallId id = bench.call(UnpublishCall{kOne, OnDeadline::Revoke}, seconds(1));
  bench.say(Answer{id, {}});
  EXPECT_FALSE(bench.status(id));
  bench.pass(seconds(1));
  bench.step(ReaderRevoked{kReader, kOne});
  EXPECT_EQ(bench.status(id), CallStatus::Ok);
  EXPECT_EQ(bench.result(id).revoked, 1U);
}

TEST(AgentUnpublish, UnknownAndBusy) {
  AgentBench bench;
  bench.start();
  EXPECT_EQ(bench.status(bench.call(UnpublishCall{kOne})), CallStatus::UnknownVersion);
  bench.publish(kOne);
  bench.call(UnpublishCall{kOne});
  EXPECT_EQ(bench.status(bench.call(UnpublishCall{kOne})), CallStatus::BufferBusy);
  EXPECT_EQ(bench.status(bench.call(FetchCall{})), CallStatus::BufferBusy);
}

// The group counts on what was fetched until the fetch is over for all.
TEST(AgentUnpublish, NotWhileTheGroupFetchesIt) {
  AgentBench bench(gpu_card(2));
  bench.start();
  FetchCall shadow;
  shadow.destination = Destination::Shadow;
  const CallId fetch = bench.fetching(bench_transfer(1, kOne), 1, shadow);
  bench.blocks(1, 0, kBlocks);
  bench.step(TransferFilled{1});
  bench.step(TransferIdle{1});
  EXPECT_EQ(bench.status(bench.call(UnpublishCall{kOne})), CallStatus::BufferBusy);
  CallResult ok;
  ok.version = kOne;
  bench.say(FetchDone{1, 1, ok});
  ASSERT_EQ(bench.status(fetch), CallStatus::Ok);
  EXPECT_FALSE(bench.status(bench.call(UnpublishCall{kOne})));
  EXPECT_EQ(bench.heard<AskUnpublish>().size(), 1U);
}

TEST(AgentClear, AWordTooLateIsAnswered) {
  AgentBench bench;
  bench.start();
  bench.say(Clear{kOne, ClearReason::Fetch, OnDeadline::Fail, bench.now});
  ASSERT_EQ(bench.heard<Cleared>().size(), 1U);
  EXPECT_EQ(bench.heard<Cleared>()[0].version, kOne);
}

TEST(AgentClear, CalledOffItServesAgainButRunsNot) {
  AgentBench bench;
  bench.start();
  bench.run(kOne, 1);
  const auto transfer = bench_transfer(2, kOne);
  bench.grant(transfer, kReader);
  bench.say(Clear{kOne, ClearReason::Fetch, OnDeadline::Fail, bench.now + seconds(1)});
  EXPECT_FALSE(bench.agent.runs());
  EXPECT_FALSE(bench.last<Runs>().version);
  bench.say(Unhide{kOne});
  EXPECT_EQ(bench.state(), HoldingState::Complete);
  EXPECT_FALSE(bench.agent.runs());
  bench.say(EndReads{{{kReader, 1, kOne, 2}}});
  bench.step(ReaderRevoked{kReader, kOne});
  EXPECT_FALSE(bench.empty());
}

// A fetch or leave that could not clear it leaves it where it was, whoever lives to say so.
TEST(AgentClear, WhatCouldNotBeClearedServesAgain) {
  AgentBench bench;
  bench.start();
  bench.publish(kOne);
  bench.grant(bench_transfer(1, kOne), kReader);
  bench.say(Clear{kOne, ClearReason::Leave, OnDeadline::Fail, bench.now + seconds(1)});
  EXPECT_EQ(bench.state(), HoldingState::Hidden);
  bench.pass(seconds(1));
  ASSERT_EQ(bench.heard<ClearFailed>().size(), 1U);
  EXPECT_EQ(bench.state(), HoldingState::Published);
  bench.say(Unhide{kOne});
  EXPECT_EQ(bench.state(), HoldingState::Published);
}

// Readers who were about to be let in when it was hidden never are.
TEST(AgentClear, CutsOffWhoWasAboutToBeLetIn) {
  AgentBench bench;
  bench.start();
  bench.publish(kOne);
  bench.say(GrantReads{bench_transfer(1, kOne), {{kReader, 1, {}}}});
  bench.say(Clear{kOne, ClearReason::Leave, OnDeadline::Fail, bench.now + seconds(1)});
  EXPECT_EQ(bench.commanded<RevokeReader>(), 1U);
  bench.allowed(kReader, 1, kOne, 1);
  ASSERT_EQ(bench.heard<Granted>().size(), 1U);
  EXPECT_EQ(bench.heard<Granted>()[0].refused, std::vector{kReader});
  EXPECT_TRUE(bench.heard<Granted>()[0].access.empty());
  bench.step(ReaderRevoked{kReader, kOne});
  EXPECT_EQ(bench.heard<Cleared>().size(), 1U);
}

// --- The others ----------------------------------------------------------------------------------

TEST(AgentCalls, AreAskedAndAnswered) {
  AgentBench bench;
  bench.start();
  const CallId withdraw = bench.call(WithdrawCall{kOne});
  const CallId retain = bench.call(RetainCall{kOne, 3, Level::Rack});
  const CallId release = bench.call(ReleaseCall{kOne});
  const CallId installed = bench.call(InstalledCall{kOne, {5, 6}, 7});
  const CallId lineage = bench.call(LineageCall{});
  EXPECT_EQ(bench.heard<AskWithdraw>().size(), 1U);
  ASSERT_EQ(bench.heard<AskRetain>().size(), 1U);
  EXPECT_EQ(bench.heard<AskRetain>()[0].retention, (Retention{3, Level::Rack}));
  EXPECT_EQ(bench.heard<AskRelease>().size(), 1U);
  ASSERT_EQ(bench.heard<AskInstalled>().size(), 1U);
  EXPECT_EQ(bench.heard<AskInstalled>()[0].groups, 7U);
  EXPECT_EQ(bench.heard<AskLineage>().size(), 1U);
  CallResult result;
  result.version = {4, 0};
  bench.say(Answer{lineage, result});
  EXPECT_EQ(bench.agent.report().lineage, 4U);
  for (const CallId id : {withdraw, retain, release, installed}) bench.say(Answer{id, {}});
  EXPECT_EQ(bench.agent.open_calls(), 0U);
  bench.say(Answer{withdraw, {}});  // again: nobody waits
}

// The coordinator is told an earlier deadline, so that the name of its error comes in time.
TEST(AgentCalls, EndByTheirDeadline) {
  AgentBench bench;
  bench.start();
  const Time begin = bench.now;
  const CallId id = bench.call(RetainCall{kOne, 1, Level::Host}, seconds(2));
  EXPECT_EQ(bench.heard<AskRetain>()[0].deadline, begin + milliseconds(1900));
  const CallId brief = bench.call(RetainCall{kOne, 1, Level::Host}, milliseconds(20));
  EXPECT_EQ(bench.heard<AskRetain>()[1].deadline, begin + milliseconds(10));
  bench.pass(milliseconds(1999));
  EXPECT_EQ(bench.status(brief), CallStatus::DeadlineExceeded);
  EXPECT_FALSE(bench.status(id));
  bench.pass(milliseconds(1));
  EXPECT_EQ(bench.status(id), CallStatus::DeadlineExceeded);
  EXPECT_EQ(bench.heard<CallEnded>().size(), 2U);
  EXPECT_EQ(bench.status(bench.call(LineageCall{}, Time{})), CallStatus::DeadlineExceeded);
}

TEST(AgentCalls, WithoutACoordinatorTheyEndNamed) {
  AgentBench bench;
  const CallId id = bench.call(LineageCall{}, seconds(1));
  const CallId fetch = bench.call(FetchCall{}, seconds(1));
  bench.pass(seconds(1));
  EXPECT_EQ(bench.status(id), CallStatus::CoordinatorUnreachable);
  EXPECT_EQ(bench.status(fetch), CallStatus::CoordinatorUnreachable);
}

TEST(AgentLeave, GoesWhenTold) {
  AgentBench bench;
  bench.start();
  bench.run(kOne, 1);
  const CallId id = bench.call(LeaveCall{});
  EXPECT_EQ(bench.heard<AskLeave>().size(), 1U);
  EXPECT_TRUE(bench.agent.report().leaving);
  EXPECT_EQ(bench.status(bench.call(LeaveCall{})), CallStatus::BufferBusy);
  EXPECT_EQ(bench.status(bench.call(FetchCall{})), CallStatus::Stopped);
  EXPECT_EQ(bench.status(bench.call(PublishCall{kTwo})), CallStatus::Stopped);
  bench.say(Clear{kOne, ClearReason::Leave, OnDeadline::Fail, bench.now + seconds(1)});
  EXPECT_TRUE(bench.empty());
  EXPECT_FALSE(bench.agent.left());
  const CallId other = bench.call(LineageCall{});
  bench.say(LeaveNow{});
  EXPECT_TRUE(bench.agent.left());
  EXPECT_EQ(bench.status(id), CallStatus::Ok);
  EXPECT_EQ(bench.status(other), CallStatus::Stopped);
  EXPECT_EQ(bench.status(bench.call(LineageCall{})), CallStatus::Stopped);
  EXPECT_TRUE(bench.agent.idle());
  EXPECT_EQ(bench.coordinator->unacknowledged(), 0U);
  bench.frames.clear();
  bench.pass(seconds(5));
  EXPECT_TRUE(bench.frames.empty());  // no heartbeat
}

TEST(AgentShutdown, EndsEverything) {
  AgentBench bench;
  bench.start();
  const auto transfer = bench_transfer(1, kOne);
  const CallId fetch = bench.fetching(transfer);
  bench.grant(transfer, kReader);
  const CallId call = bench.call(LineageCall{});
  bench.shutdown();
  EXPECT_EQ(bench.status(call), CallStatus::Stopped);
  EXPECT_FALSE(bench.status(fetch));
  EXPECT_FALSE(bench.agent.idle());
  bench.step(TransferIdle{1});
  EXPECT_EQ(bench.status(fetch), CallStatus::Stopped);
  bench.step(ReaderRevoked{kReader, kOne});
  EXPECT_TRUE(bench.agent.idle());
  EXPECT_EQ(bench.next, Time::never());
}

}  // namespace
}  // namespace holdfast::testing
