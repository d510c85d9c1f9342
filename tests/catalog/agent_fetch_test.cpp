// Fetches and transfers of an agent.
#include "tests/catalog/agent_bench.hpp"

namespace holdfast::testing {
namespace {

constexpr Version kOne{1, 1};
constexpr Version kTwo{1, 2};
constexpr Version kThree{1, 3};
constexpr WorkerId kReader(2U);

CallResult with(CallStatus status, Version version = {}) {
  CallResult result;
  result.status = status;
  result.version = version;
  return result;
}

// --- Numbers and decisions -----------------------------------------------------------------------

TEST(AgentFetch, CountsInItsGeneration) {
  AgentBench bench;
  bench.start();
  for (std::uint64_t n = 1; n <= 3; ++n) {
    const CallId id = bench.call(FetchCall{});
    EXPECT_EQ(bench.heard<AskFetch>().back().n, n);
    bench.say(FetchDone{n, 1, with(CallStatus::NothingNewer)});
    EXPECT_EQ(bench.status(id), CallStatus::NothingNewer);
  }
  bench.say(GenerationIs{2});
  bench.call(FetchCall{});
  EXPECT_EQ(bench.heard<AskFetch>().back().n, 1U);
  EXPECT_EQ(bench.heard<AskFetch>().back().generation, 2U);
}

// The coordinator may have heard of it, and what it decides for one call must not answer another.
TEST(AgentFetch, ANumberIsUsedOnceEvenIfNobodyAnswered) {
  AgentBench bench;
  bench.start();
  const CallId id = bench.call(FetchCall{}, seconds(1));
  bench.pass(seconds(1));
  EXPECT_EQ(bench.status(id), CallStatus::DeadlineExceeded);
  bench.call(FetchCall{});
  EXPECT_EQ(bench.heard<AskFetch>().back().n, 2U);
  EXPECT_EQ(bench.status(bench.call(FetchCall{})), CallStatus::BufferBusy);
  bench.say(FetchDone{2, 1, with(CallStatus::Cancelled)});
  bench.call(FetchCall{});
  EXPECT_EQ(bench.heard<AskFetch>().back().n, 4U);
}

TEST(AgentFetch, OneAtATime) {
  AgentBench bench;
  bench.start();
  bench.call(FetchCall{});
  EXPECT_EQ(bench.status(bench.call(FetchCall{})), CallStatus::BufferBusy);
  EXPECT_EQ(bench.status(bench.call(PublishCall{kOne})), CallStatus::BufferBusy);
}

TEST(AgentFetch, ADecisionOfErrorEndsItAndNeverChanges) {
  AgentBench bench;
  bench.start();
  const CallId id = bench.call(FetchCall{});
  Decision decision = bench.decide(1, kOne);
  decision.result = with(CallStatus::GroupMismatch);
  bench.say(Decided{decision});
  EXPECT_EQ(bench.status(id), CallStatus::GroupMismatch);
  bench.say(Decided{bench.decide(1, kOne)});  // replayed as something else
  EXPECT_EQ(bench.agent.report().decision.result.status, CallStatus::GroupMismatch);
}

// A fetch of a generation that is over is answered; one that nobody heard of moves on.
TEST(AgentFetch, AGenerationEnds) {
  AgentBench bench;
  bench.start();
  const CallId id = bench.call(FetchCall{});
  bench.say(GenerationIs{2});
  EXPECT_FALSE(bench.status(id));
  bench.say(FetchDone{1, 1, with(CallStatus::GroupBroken)});
  EXPECT_EQ(bench.status(id), CallStatus::GroupBroken);

  AgentBench early;
  early.step(AgentTimePassed{});
  early.call(FetchCall{});
  early.welcome(1, 4);
  ASSERT_EQ(early.heard<AskFetch>().size(), 1U);
  EXPECT_EQ(early.heard<AskFetch>()[0].generation, 4U);
  EXPECT_EQ(early.heard<AskFetch>()[0].n, 1U);
}

// Else it and the others would count differently until the next death.
TEST(AgentFetch, WhatWasNotAskedEndsWithItsGenerationToo) {
  AgentBench bench;
  bench.start();
  bench.step(FromCoordinator{UnknownSession{0, 1}});
  const CallId id = bench.call(FetchCall{});
  bench.welcome(2, 2);
  ASSERT_EQ(bench.heard<AskFetch>().size(), 1U);
  EXPECT_EQ(bench.heard<AskFetch>()[0].generation, 1U);
  bench.say(FetchDone{1, 1, with(CallStatus::GroupBroken)});
  EXPECT_EQ(bench.status(id), CallStatus::GroupBroken);
  bench.call(FetchCall{});
  EXPECT_EQ(bench.heard<AskFetch>().back().generation, 2U);
  EXPECT_EQ(bench.heard<AskFetch>().back().n, 1U);
}

TEST(AgentFetch, CountsWhatEndedWithoutIt) {
  AgentBench bench;
  bench.start();
  bench.say(FetchDone{2, 1, with(CallStatus::DeadlineExceeded)});
  EXPECT_EQ(bench.agent.report().over, 2U);
  bench.call(FetchCall{});
  EXPECT_EQ(bench.heard<AskFetch>().back().n, 3U);
  EXPECT_EQ(bench.agent.report().over, 2U);
}

// Its own calls ended by themselves; the coordinator takes the version for what the group runs.
TEST(AgentFetch, RunsWhatTheGroupMadeHoweverManyCallsLater) {
  AgentBench bench;
  bench.start();
  bench.fetching(bench_transfer(1, kOne));
  bench.blocks(1, 0, kBlocks);
  bench.step(TransferFilled{1});
  bench.step(TransferIdle{1});
  bench.pass(seconds(10));
  bench.call(FetchCall{}, seconds(1));
  bench.pass(seconds(1));
  bench.call(FetchCall{});
  EXPECT_EQ(bench.heard<AskFetch>().back().n, 3U);
  bench.say(FetchDone{1, 1, with(CallStatus::Ok, kOne)});
  EXPECT_EQ(bench.agent.runs(), kOne);
}

TEST(AgentFetch, ADeathInTheGroupStopsWhatRuns) {
  AgentBench bench;
  bench.start();
  bench.run(kOne, 1);
  bench.say(GenerationIs{2});
  EXPECT_FALSE(bench.agent.runs());
  EXPECT_EQ(bench.state(), HoldingState::Complete);
}

TEST(AgentFetch, AskedTooEarlyItAsksAgain) {
  AgentBench bench;
  const CallId lost = bench.call(FetchCall{}, seconds(1));
  bench.pass(seconds(1));
  EXPECT_EQ(bench.status(lost), CallStatus::CoordinatorUnreachable);
  bench.welcome();
  // Generation 0 is over: numbers start anew.
  bench.call(FetchCall{});
  bench.say(FetchDone{1, 1, with(CallStatus::Cancelled)});
  bench.call(FetchCall{});
  ASSERT_EQ(bench.heard<AskFetch>().size(), 2U);
  bench.say(FetchDone{1, 1, with(CallStatus::Cancelled)});
  EXPECT_EQ(bench.heard<AskFetch>().size(), 3U);
}

TEST(AgentFetch, SupersededItGoesOnByItself) {
  AgentBench bench;
  bench.start();
  const auto transfer = bench_transfer(1, kOne);
  const FetchCall latest{std::nullopt, Destination::InPlace, OnNewer::Restart};
  const CallId id = bench.fetching(transfer, 1, latest);
  bench.blocks(1, 0, 3);
  bench.say(Stop{1});
  bench.say(FetchDone{1, 1, with(CallStatus::Superseded)});
  EXPECT_FALSE(bench.status(id));
  ASSERT_EQ(bench.heard<AskFetch>().size(), 2U);
  EXPECT_EQ(bench.heard<AskFetch>()[1].n, 2U);
  EXPECT_EQ(bench.heard<AskFetch>()[1].deadline, bench.heard<AskFetch>()[0].deadline);
  bench.step(TransferIdle{1});
  EXPECT_FALSE(bench.status(id));
  bench.say(Clear{kOne, ClearReason::Fetch, OnDeadline::Fail, bench.now + seconds(1)});
  bench.say(Decided{bench.decide(2, kTwo, latest)});
  bench.say(Begin{bench_transfer(2, kTwo), Destination::InPlace, {}, {}});
  bench.blocks(2, 0, kBlocks);
  bench.step(TransferIdle{2});
  bench.say(FetchDone{2, 1, with(CallStatus::Ok, kTwo)});
  EXPECT_EQ(bench.status(id), CallStatus::Ok);
  EXPECT_EQ(bench.agent.runs(), kTwo);
}

TEST(AgentFetch, FinishIsNotRestarted) {
  AgentBench bench;
  bench.start();
  const CallId id = bench.call(FetchCall{});
  bench.say(FetchDone{1, 1, with(CallStatus::Superseded)});
  EXPECT_EQ(bench.status(id), CallStatus::Superseded);
}

TEST(AgentFetch, IsCancelled) {
  AgentBench bench;
  bench.start();
  const CallId fetch = bench.call(FetchCall{});
  const CallId cancel = bench.call(CancelCall{fetch});
  ASSERT_EQ(bench.heard<AskCancel>().size(), 1U);
  EXPECT_EQ(bench.heard<AskCancel>()[0].n, 1U);
  bench.say(FetchDone{1, 1, with(CallStatus::Cancelled)});
  EXPECT_EQ(bench.status(fetch), CallStatus::Cancelled);
  EXPECT_EQ(bench.status(cancel), CallStatus::Ok);
  EXPECT_EQ(bench.status(bench.call(CancelCall{fetch})), CallStatus::Ok);
}

// --- Filling -------------------------------------------------------------------------------------

TEST(AgentFetch, RunsOnlyWhenTheGroupIsDone) {
  AgentBench bench;
  bench.start();
  const CallId id = bench.fetching(bench_transfer(1, kOne));
  EXPECT_EQ(bench.last<StartTransfer>().slot, 0U);
  EXPECT_EQ(bench.state(), HoldingState::Filling);
  bench.blocks(1, 0, kBlocks);
  bench.step(TransferFilled{1});
  EXPECT_EQ(bench.heard<Filled>().size(), 1U);
  EXPECT_EQ(bench.state(), HoldingState::Complete);
  EXPECT_FALSE(bench.agent.runs());
  EXPECT_FALSE(bench.status(id));
  bench.say(FetchDone{1, 1, with(CallStatus::Ok, kOne)});
  EXPECT_EQ(bench.agent.runs(), kOne);
  EXPECT_EQ(bench.last<Runs>().version, kOne);
  EXPECT_EQ(bench.status(id), CallStatus::Ok);
}

TEST(AgentFetch, NeverOkWithoutEveryBlock) {
  AgentBench bench;
  bench.start();
  const CallId id = bench.fetching(bench_transfer(1, kOne));
  bench.blocks(1, 0, kBlocks - 1);
  bench.step(TransferFilled{1});  // whatever the transfer thinks
  EXPECT_TRUE(bench.heard<Filled>().empty());
  bench.say(FetchDone{1, 1, with(CallStatus::Ok, kOne)});
  bench.step(TransferIdle{1});
  EXPECT_EQ(bench.status(id), CallStatus::GroupBroken);
  EXPECT_FALSE(bench.agent.runs());
}

TEST(AgentFetch, StopsItsReadsBeforeItReturns) {
  AgentBench bench;
  bench.start();
  const CallId id = bench.call(FetchCall{}, seconds(2));
  bench.say(Decided{bench.decide(1, kOne)});
  bench.say(Begin{bench_transfer(1, kOne), Destination::InPlace, {}, {}});
  bench.blocks(1, 2, 4);
  bench.pass(seconds(2));
  EXPECT_EQ(bench.commanded<StopTransfer>(), 1U);
  EXPECT_FALSE(bench.status(id));
  bench.step(TransferIdle{1});
  EXPECT_EQ(bench.status(id), CallStatus::DeadlineExceeded);
  ASSERT_EQ(bench.heard<TransferStopped>().size(), 1U);
  EXPECT_EQ(bench.heard<TransferStopped>()[0].verified.count(), 2U);
  // What was verified stays, may be read, and is not fetched again.
  EXPECT_EQ(bench.state(), HoldingState::Filling);
  bench.grant(bench_transfer(3, kOne), kReader);
  EXPECT_EQ(bench.heard<Granted>().back().readers, std::vector{kReader});
  bench.fetching(bench_transfer(2, kOne), 2);
  EXPECT_EQ(bench.agent.holdings()[0]->verified.count(), 2U);
}

// A digest takes as long as it takes; the call ends by its deadline.
TEST(AgentFetch, DoesNotWaitForDigestsButItsBufferDoes) {
  AgentBench bench;
  bench.start();
  const CallId id = bench.call(FetchCall{}, seconds(2));
  bench.say(Decided{bench.decide(1, kOne)});
  bench.say(Begin{bench_transfer(1, kOne), Destination::InPlace, {}, {}});
  bench.pass(seconds(2));
  EXPECT_FALSE(bench.status(id));
  bench.step(TransferQuiet{1});
  EXPECT_EQ(bench.status(id), CallStatus::DeadlineExceeded);
  EXPECT_TRUE(bench.heard<TransferStopped>().empty());
  const CallId early = bench.call(PublishCall{kTwo});
  EXPECT_EQ(bench.status(early), CallStatus::BufferBusy);
  bench.step(TransferIdle{1});
  EXPECT_EQ(bench.heard<TransferStopped>().size(), 1U);
  EXPECT_TRUE(bench.empty());
  bench.publish(kTwo);
}

TEST(AgentFetch, IsNotFilledWhenNobodyAsked) {
  AgentBench bench;
  bench.start();
  bench.say(Begin{bench_transfer(1, kOne), Destination::InPlace, {}, {}});
  EXPECT_EQ(bench.commanded<StartTransfer>(), 0U);
  ASSERT_EQ(bench.heard<TransferStopped>().size(), 1U);
  EXPECT_EQ(bench.heard<TransferStopped>()[0].plan, 1U);
  bench.say(Stop{9});  // of a plan that is not here
  EXPECT_EQ(bench.heard<TransferStopped>().size(), 2U);
}

// A publish that ended unanswered left other bytes under the number: they are not what is fetched.
TEST(AgentFetch, WhatWasPublishedUnheardIsComparedFirst) {
  for (const bool same : {true, false}) {
    AgentBench bench;
    bench.start();
    const auto transfer = bench_transfer(1, kOne);
    const CallId publish = bench.call(PublishCall{kOne}, seconds(1));
    bench.step(SlotDigested{bench.last<DigestSlot>().slot, bench_digests(same ? 1 : 2)});
    bench.pass(seconds(1));
    ASSERT_EQ(bench.status(publish), CallStatus::DeadlineExceeded);
    ASSERT_FALSE(bench.empty());
    bench.fetching(transfer);
    EXPECT_EQ(bench.heard<Filled>().size(), same ? 1U : 0U);
    ASSERT_EQ(bench.heard<TransferStopped>().size(), same ? 0U : 1U);
    if (!same) {
      EXPECT_TRUE(bench.heard<TransferStopped>()[0].verified.none());
      bench.say(Tell{kOne});
      EXPECT_TRUE(bench.heard<Progress>()[0].verified.none());
    }
    bench.grant(bench_transfer(2, kOne), kReader);
    ASSERT_EQ(bench.heard<Granted>().size(), 1U);
    EXPECT_EQ(bench.heard<Granted>()[0].refused.empty(), same);
  }
}

TEST(AgentFetch, InPlaceTheOldVersionMustBeGone) {
  AgentBench bench;
  bench.start();
  bench.run(kOne, 1);
  bench.fetching(bench_transfer(2, kTwo), 2);
  EXPECT_EQ(bench.heard<TransferStopped>().back().plan, 2U);
  bench.say(Clear{kOne, ClearReason::Fetch, OnDeadline::Fail, bench.now + seconds(1)});
  EXPECT_FALSE(bench.agent.runs());
  EXPECT_TRUE(bench.empty());
  bench.say(Begin{bench_transfer(3, kTwo), Destination::InPlace, {}, {}});
  EXPECT_EQ(bench.last<StartTransfer>().transfer->id, 3U);
  // On failure it is empty, never the old version.
  bench.say(Stop{3});
  bench.step(TransferIdle{3});
  bench.say(FetchDone{2, 1, with(CallStatus::DeadlineExceeded)});
  EXPECT_TRUE(bench.empty());
  EXPECT_FALSE(bench.agent.runs());
}

// The coordinator does not wait for Cleared where nobody reads: both may come in one step.
TEST(AgentFetch, ABufferThatNobodyReadsIsFreeForTheNextMessage) {
  AgentBench bench;
  bench.start();
  bench.run(kOne, 1, 1, FetchCall{});
  bench.call(FetchCall{});
  bench.say(Decided{bench.decide(2, kTwo)});
  const std::size_t stopped = bench.heard<TransferStopped>().size();
  std::vector<CoordinatorFrame> frames;
  const auto send = [&](CoordinatorMessage message) {
    bench.coordinator->send(std::make_shared<const CoordinatorMessage>(std::move(message)),
                            bench.now);
    bench.coordinator->due(bench.now, frames);
  };
  send(Clear{kOne, ClearReason::Fetch, OnDeadline::Fail, bench.now + seconds(1)});
  send(Begin{bench_transfer(2, kTwo), Destination::InPlace, {}, {}});
  ASSERT_EQ(frames.size(), 2U);
  bench.step(FromCoordinator{frames[1]});  // the later one first: the session puts them in order
  bench.step(FromCoordinator{frames[0]});
  EXPECT_EQ(bench.heard<Cleared>().size(), 1U);
  EXPECT_EQ(bench.heard<TransferStopped>().size(), stopped);
  EXPECT_EQ(bench.last<StartTransfer>().transfer->id, 2U);
  EXPECT_EQ(bench.state(0), HoldingState::Filling);
}

TEST(AgentFetch, ShadowFillsTheOtherSlotAndSwitches) {
  AgentBench bench(gpu_card(2));
  bench.start();
  const FetchCall shadow{std::nullopt, Destination::Shadow, OnNewer::Finish};
  bench.run(kOne, 1, 1, shadow);
  const CallId id = bench.fetching(bench_transfer(2, kTwo), 2, shadow);
  EXPECT_EQ(bench.last<StartTransfer>().slot, 1U);
  EXPECT_EQ(bench.agent.runs(), kOne);  // meanwhile
  bench.blocks(2, 0, kBlocks);
  bench.step(TransferIdle{2});
  bench.say(FetchDone{2, 1, with(CallStatus::Ok, kTwo)});
  EXPECT_EQ(bench.status(id), CallStatus::Ok);
  EXPECT_EQ(bench.agent.runs(), kTwo);
  EXPECT_EQ(bench.last<Runs>().slot, 1U);
  EXPECT_EQ(bench.state(0), HoldingState::Complete);  // may still be read
  bench.say(Clear{kOne, ClearReason::Fetch, OnDeadline::Fail, bench.now + seconds(1)});
  bench.fetching(bench_transfer(3, kThree), 3, shadow);
  EXPECT_EQ(bench.last<StartTransfer>().slot, 0U);
  EXPECT_EQ(bench.agent.runs(), kTwo);
}

TEST(AgentFetch, TellsProgressNowAndThenAndOnlyMore) {
  AgentBench bench;
  bench.start();
  bench.fetching(bench_transfer(1, kOne));
  bench.blocks(1, 0, 1);
  EXPECT_EQ(bench.heard<Progress>().size(), 1U);
  bench.blocks(1, 1, 4);
  EXPECT_EQ(bench.heard<Progress>().size(), 1U);
  bench.pass(milliseconds(99));
  EXPECT_EQ(bench.heard<Progress>().size(), 1U);
  bench.pass(milliseconds(1));
  ASSERT_EQ(bench.heard<Progress>().size(), 2U);
  EXPECT_EQ(bench.heard<Progress>()[1].verified.count(), 4U);
  bench.pass(seconds(1));
  EXPECT_EQ(bench.heard<Progress>().size(), 2U);  // nothing new
  bench.say(Tell{kOne});
  EXPECT_TRUE(bench.heard<Progress>().back().told);
  EXPECT_EQ(bench.heard<Progress>().back().plan, 1U);
  bench.say(Tell{kTwo});
  EXPECT_TRUE(bench.heard<Progress>().back().verified.none());
}

TEST(AgentFetch, ChangesAndOrphansReachTheRightPlace) {
  AgentBench bench;
  bench.start();
  bench.fetching(bench_transfer(1, kOne));
  bench.step(TransferWantsParent{1, StripeId(0U), 3, WorkerId(0U), FailureKind::ReadFailed});
  bench.step(TransferSwitched{1, StripeId(0U), WorkerId(0U), WorkerId(3U)});
  bench.step(TransferSlow{1, StripeId(0U), WorkerId(3U)});
  EXPECT_EQ(bench.heard<ParentWanted>().size(), 1U);
  EXPECT_EQ(bench.heard<Switched>().size(), 1U);
  EXPECT_EQ(bench.heard<SourceIsSlow>().size(), 1U);
  EXPECT_EQ(bench.agent.report().transfers[0].edges[0].parent, WorkerId(3U));
  // A new coordinator hears again that the stripe has no parent.
  bench.step(FromCoordinator{UnknownSession{0, 1}});
  bench.messages.clear();
  bench.welcome(2);
  EXPECT_EQ(bench.heard<ParentWanted>().size(), 1U);
  LiveEdge edge;
  edge.stripe = StripeId(0U);
  edge.child = kSelf;
  edge.parent = WorkerId(2U);
  bench.say(Change{1, {StripeId(0U)}, {edge}, {}});
  EXPECT_EQ(bench.last<ChangeTransfer>().edges.size(), 1U);
  EXPECT_EQ(bench.agent.report().transfers[0].edges, std::vector{edge});
  bench.step(FromCoordinator{UnknownSession{0, 1}});
  bench.messages.clear();
  bench.welcome(3);
  EXPECT_TRUE(bench.heard<ParentWanted>().empty());
}

// Who is in the middle of a chain tells its children until they are done.
TEST(AgentFetch, AFilledTransferLastsAsLongAsItsChildren) {
  AgentBench bench;
  bench.start();
  const auto transfer = bench_transfer(1, kOne);
  bench.fetching(transfer);
  bench.grant(transfer, kReader);
  bench.blocks(1, 0, kBlocks);
  EXPECT_EQ(bench.commanded<StopTransfer>(), 0U);
  bench.say(EndReads{{{kReader, 1, kOne, 1}}});
  bench.step(ReaderRevoked{kReader, kOne});
  EXPECT_EQ(bench.commanded<StopTransfer>(), 1U);
  bench.step(TransferIdle{1});
  EXPECT_EQ(bench.agent.open_transfers(), 0U);
}

}  // namespace
}  // namespace holdfast::testing
