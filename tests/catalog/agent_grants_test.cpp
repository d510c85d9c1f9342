// Whom an agent lets read, what it keeps in host memory, and how much of it an agent takes itself.
#include "tests/catalog/agent_bench.hpp"

namespace holdfast::testing {
namespace {

constexpr Version kOne{1, 1};
constexpr Version kTwo{1, 2};
constexpr WorkerId kReader(2U);

// --- Grants --------------------------------------------------------------------------------------

TEST(AgentGrants, AreThereBeforeTheReaderMayStart) {
  AgentBench bench;
  bench.start();
  bench.publish(kOne);
  bench.say(GrantReads{bench_transfer(1, kOne), {{kReader, 1, {}}, {WorkerId(3U), 1, {}}}});
  EXPECT_EQ(bench.commanded<AllowReader>(), 2U);
  EXPECT_EQ(bench.agent.grants().size(), 2U);
  bench.allowed(kReader, 1, kOne, 1);
  EXPECT_TRUE(bench.heard<Granted>().empty());
  bench.step(ReaderAllowed{{WorkerId(3U), 1, kOne, 1}, {}});  // the transport refuses
  ASSERT_EQ(bench.heard<Granted>().size(), 1U);
  EXPECT_EQ(bench.heard<Granted>()[0].readers, std::vector{kReader});
  EXPECT_EQ(bench.heard<Granted>()[0].access.size(), 1U);
  EXPECT_EQ(bench.heard<Granted>()[0].refused, std::vector{WorkerId(3U)});
}

TEST(AgentGrants, AreRefusedForWhatIsNotHere) {
  AgentBench bench;
  bench.start();
  bench.publish(kOne);
  bench.say(GrantReads{bench_transfer(1, kTwo), {{kReader, 1, {}}}});
  EXPECT_EQ(bench.heard<Granted>().back().refused, std::vector{kReader});
  auto other = std::make_shared<PlannedTransfer>(*bench_transfer(2, kOne));
  other->root = {9, 9};
  bench.say(GrantReads{other, {{kReader, 1, {}}}});
  EXPECT_EQ(bench.heard<Granted>().back().refused, std::vector{kReader});
  bench.say(GrantReads{bench_transfer(3, kOne), {{kSelf, 1, {}}}});
  EXPECT_EQ(bench.heard<Granted>().back().refused, std::vector{kSelf});
  EXPECT_EQ(bench.commanded<AllowReader>(), 0U);
}

TEST(AgentGrants, TheEarlierSelfOfAReaderIsCutOffFirst) {
  AgentBench bench;
  bench.start();
  bench.publish(kOne);
  bench.grant(bench_transfer(1, kOne), kReader, 2);
  bench.say(GrantReads{bench_transfer(2, kOne), {{kReader, 1, {}}}});
  EXPECT_EQ(bench.heard<Granted>().back().refused, std::vector{kReader});  // dead already
  bench.say(GrantReads{bench_transfer(3, kOne), {{kReader, 3, {}}}});
  EXPECT_EQ(bench.commanded<RevokeReader>(), 1U);
  EXPECT_EQ(bench.commanded<AllowReader>(), 1U);  // not before the revocation is confirmed
  bench.step(ReaderRevoked{kReader, kOne});
  EXPECT_EQ(bench.commanded<AllowReader>(), 2U);
  bench.allowed(kReader, 3, kOne, 3);
  EXPECT_EQ(bench.heard<Granted>().back().plan, 3U);
  EXPECT_EQ(bench.heard<Granted>().back().readers, std::vector{kReader});
  EXPECT_EQ(bench.agent.grants().size(), 1U);
}

TEST(AgentGrants, WaitForARevocationOfTheSameReader) {
  AgentBench bench;
  bench.start();
  bench.publish(kOne);
  bench.grant(bench_transfer(1, kOne), kReader);
  bench.say(EndReads{{{kReader, 1, kOne, 1}}});
  bench.say(GrantReads{bench_transfer(2, kOne), {{kReader, 1, {}}}});
  EXPECT_EQ(bench.commanded<AllowReader>(), 1U);
  bench.step(ReaderRevoked{kReader, kOne});
  EXPECT_EQ(bench.heard<GrantsGone>().size(), 1U);
  EXPECT_EQ(bench.commanded<AllowReader>(), 2U);
}

// The transport knows a reader by its version alone: it is cut off with its last grant.
TEST(AgentGrants, OneOfTwoPlansEndsWithoutCuttingTheOther) {
  AgentBench bench;
  bench.start();
  bench.publish(kOne);
  bench.grant(bench_transfer(1, kOne), kReader);
  bench.grant(bench_transfer(2, kOne), kReader);
  bench.say(EndReads{{{kReader, 1, kOne, 1}}});
  EXPECT_EQ(bench.commanded<RevokeReader>(), 0U);
  EXPECT_EQ(bench.heard<GrantsGone>().size(), 1U);
  bench.say(EndReads{{{kReader, 1, kOne, 2}, {WorkerId(3U), 1, kOne, 2}}});
  EXPECT_EQ(bench.commanded<RevokeReader>(), 1U);
  EXPECT_EQ(bench.heard<GrantsGone>().size(), 2U);  // of what was not there
  bench.step(ReaderRevoked{kReader, kOne});
  EXPECT_EQ(bench.heard<GrantsGone>().size(), 3U);
  EXPECT_TRUE(bench.agent.grants().empty());
}

// All sources of a plan are asked at once: those in the middle before they begin themselves.
TEST(AgentGrants, AreGivenByWhoIsYetToBegin) {
  AgentBench bench;
  bench.start();
  const auto transfer = bench_transfer(1, kOne);
  bench.call(FetchCall{});
  bench.say(GrantReads{transfer, {{kReader, 1, {}}}});
  EXPECT_EQ(bench.heard<Granted>().back().refused.size(), 1U);  // not decided
  bench.say(Decided{bench.decide(1, kOne)});
  bench.grant(transfer, kReader);
  EXPECT_EQ(bench.heard<Granted>().back().readers.size(), 1U);
  EXPECT_EQ(bench.state(), HoldingState::Filling);
  EXPECT_TRUE(bench.agent.holdings()[0]->verified.none());
  // The plan is given up before it began: nothing stays.
  bench.say(EndReads{{{kReader, 1, kOne, 1}}});
  bench.step(ReaderRevoked{kReader, kOne});
  EXPECT_TRUE(bench.empty());
}

TEST(AgentGrants, ChildrenOfAHolderAreAdded) {
  AgentBench bench;
  bench.start();
  bench.publish(kOne);
  LiveEdge edge;
  edge.stripe = StripeId(0U);
  edge.child = kReader;
  edge.parent = kSelf;
  bench.say(GrantReads{bench_transfer(1, kOne), {{kReader, 1, {edge}}}});
  bench.allowed(kReader, 1, kOne, 1);
  ASSERT_EQ(bench.commanded<AddChildren>(), 1U);
  EXPECT_EQ(bench.last<AddChildren>().edges, std::vector{edge});
  bench.say(EndReads{{{kReader, 1, kOne, 1}}});
  bench.step(ReaderRevoked{kReader, kOne});
  EXPECT_EQ(bench.last<StopTransfer>().plan, 1U);
}

TEST(AgentNotes, AreKeptForTheNextCoordinator) {
  AgentBench bench;
  bench.start();
  bench.publish(kOne);
  bench.say(Note{kOne, true, {2, Level::Rack}});
  EXPECT_TRUE(bench.agent.report().holdings[0].withdrawn);
  EXPECT_EQ(bench.agent.report().holdings[0].retention, (Retention{2, Level::Rack}));
}

// --- Host memory ---------------------------------------------------------------------------------

TEST(AgentHostMemory, AllocatesWithinItsBudgetAndFrees) {
  AgentBench bench(host_card(kBlocks * 1000 + 500));
  bench.start(1, 0);
  bench.say(Begin{bench_transfer(1, kOne, kWholeModel), Destination::InPlace, {}, {}});
  EXPECT_EQ(bench.last<AllocateSlot>().bytes, Bytes(kBlocks * 1000));
  bench.blocks(1, 0, kBlocks);
  bench.step(TransferFilled{1});
  bench.step(TransferIdle{1});
  EXPECT_EQ(bench.heard<Filled>().size(), 1U);
  bench.say(Begin{bench_transfer(2, kTwo, kWholeModel), Destination::InPlace, {}, {}});
  EXPECT_EQ(bench.heard<TransferStopped>().back().plan, 2U);  // it does not fit
  EXPECT_EQ(bench.commanded<AllocateSlot>(), 1U);
  bench.say(Clear{kOne, ClearReason::Forget, OnDeadline::Revoke, bench.now + seconds(1)});
  EXPECT_EQ(bench.commanded<FreeSlot>(), 1U);
  bench.say(Begin{bench_transfer(3, kTwo, kWholeModel), Destination::InPlace, {}, {}});
  EXPECT_EQ(bench.last<StartTransfer>().transfer->id, 3U);
}

TEST(AgentHostMemory, HasNoCallsOfAGroup) {
  AgentBench bench(host_card(1));
  bench.start(1, 0);
  EXPECT_EQ(bench.status(bench.call(FetchCall{})), CallStatus::GroupMismatch);
  EXPECT_EQ(bench.status(bench.call(PublishCall{kOne})), CallStatus::BufferBusy);
}

// --- Memory --------------------------------------------------------------------------------------

TEST(AgentMemory, TakesLessThan4KiBBesideBitmaps) {
  AgentBench bench(gpu_card(2));
  bench.start();
  const FetchCall shadow{std::nullopt, Destination::Shadow, OnNewer::Finish};
  bench.run(kOne, 1, 1, shadow);
  const auto transfer = bench_transfer(2, kTwo);
  bench.fetching(transfer, 2, shadow);
  for (std::uint32_t plan = 3; plan < 7; ++plan) {
    bench.grant(bench_transfer(plan, kOne), kReader);
    bench.grant(bench_transfer(plan, kOne), WorkerId(3U));
  }
  bench.call(RetainCall{kOne, 1, Level::Host});
  bench.blocks(2, 0, 4);
  std::size_t bitmaps = 0;
  for (const auto& holding : bench.agent.holdings()) {
    if (holding) bitmaps += holding->verified.words().size_bytes();
  }
  const std::size_t bytes = bench.agent.memory_bytes() - bitmaps;
  RecordProperty("bytes", static_cast<int>(bytes));
  std::printf("an agent with two versions, eight readers and a transfer: %zu bytes\n", bytes);
  EXPECT_LE(bytes, 4096U);
}

}  // namespace
}  // namespace holdfast::testing
