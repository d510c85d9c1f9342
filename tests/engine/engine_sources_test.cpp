// Rules 7 to 11 of worker_engine.hpp, one by one, without a network.
#include <gtest/gtest.h>

#include "tests/engine/engine_bench.hpp"

namespace holdfast::testing {
namespace {

// One stripe of 8 blocks: 0 holds; 1 reads from 0; 2 from 1, in need from 0; 3 from 1, in need
// from 2; 4 from 3, in need from 1.
Plan family(const Demand& demand) {
  Plan plan = tree_plan(demand, {0, 1, 1, 3}, 3);
  plan.stripes[0].edges[1].alternate = WorkerId(0U);
  plan.stripes[0].edges[2].alternate = WorkerId(2U);
  plan.stripes[0].edges[3].alternate = WorkerId(1U);
  return plan;
}

class Family : public Bench {
 public:
  explicit Family(std::uint32_t worker, EngineConfig config = {}) : Bench(8, {0, 1, 1, 3}, worker) {
    const Demand demand = simple_demand(4, 8, kBlock);
    engine = std::make_unique<WorkerEngine>(tables_for(demand, family(demand)), WorkerId(worker),
                                            config);
    step(TimePassed{});
  }
};

TEST(EngineSources, ALostParentIsReplacedByTheHolder) {
  Family bench(2);
  bench.have(1, 0, {0xff}, 8);
  EXPECT_EQ(bench.reads(), (Indices{0, 1, 2}));
  bench.verify(0);
  bench.step(WorkerLost{WorkerId(1U)});
  ASSERT_EQ(bench.all<CancelReads>().size(), 1U);
  ASSERT_EQ(bench.all<Reparented>().size(), 1U);
  const Reparented said = bench.all<Reparented>()[0];
  EXPECT_EQ(said.from, WorkerId(1U));
  EXPECT_EQ(said.to, WorkerId(0U));
  EXPECT_EQ(said.cause, FailureKind::SourceLost);
  EXPECT_EQ(bench.reads(), Indices{}) << "three reads are open";
  EXPECT_TRUE(bench.all<SendMessage>().empty()) << "a holder needs no ask";
  // One of them still comes; what came is not read again.
  bench.step(BlockRead{{0, 1}, ReadStatus::Ok});
  EXPECT_EQ(bench.all<DigestBlock>().size(), 1U);
  bench.step(BlockRead{{0, 2}, ReadStatus::Cancelled});
  bench.step(BlockRead{{0, 3}, ReadStatus::PeerGone});
  EXPECT_TRUE(bench.all<Reparented>().empty());
  EXPECT_EQ(bench.reads(), Indices{}) << "a digest is open";
  EXPECT_EQ(bench.engine->source(0), WorkerId(1U));
  bench.step(BlockDigested{{0, 1}, 101});
  EXPECT_EQ(bench.reads(), (Indices{2, 3, 4}));
  EXPECT_EQ(bench.engine->source(0), WorkerId(0U));
  for (std::uint32_t i = 2; i < 8; ++i) bench.verify(i);
  EXPECT_TRUE(bench.engine->complete());
  EXPECT_EQ(bench.all<Completed>().size(), 1U);
}

// Readers that queue at one source for longer than a read deadline must get there in the end.
TEST(EngineSources, ReadsThatRanOutOfTimeAreGivenMoreOfIt) {
  EngineConfig config;
  config.read_deadline = seconds(1);
  config.no_progress = seconds(7);
  Family bench(2, config);
  bench.have(1, 0, {0xff}, 8);
  bench.now += seconds(1);
  for (std::uint32_t i = 0; i < 3; ++i) {
    bench.step(BlockRead{{0, i}, ReadStatus::DeadlineExceeded});
  }
  EXPECT_EQ(bench.engine->read_deadline(), seconds(2)) << "they ran out together";
  const auto reads = bench.all<ReadBlock>();
  ASSERT_EQ(reads.size(), 3U);
  for (const ReadBlock& read : reads) EXPECT_EQ(read.deadline, bench.now + seconds(2));
  bench.now += seconds(2);
  bench.step(BlockRead{{0, 0}, ReadStatus::DeadlineExceeded});
  EXPECT_EQ(bench.engine->read_deadline(), milliseconds(3500)) << "half of no_progress at most";
}

TEST(EngineSources, EachFailureTurnsToTheAlternate) {
  const auto turned = [](const EngineEvent& event, FailureKind cause, ReadStatus status) {
    Family bench(2);
    bench.have(1, 0, {0xff}, 8);
    if (std::holds_alternative<BlockDigested>(event)) {
      bench.step(BlockRead{{0, 0}, ReadStatus::Ok});
    }
    bench.step(event);
    ASSERT_EQ(bench.all<Reparented>().size(), 1U);
    EXPECT_EQ(bench.all<Reparented>()[0].cause, cause);
    EXPECT_EQ(bench.all<Reparented>()[0].status, status);
    EXPECT_EQ(bench.all<BadDigest>().size(), cause == FailureKind::DigestMismatch ? 1U : 0U);
    EXPECT_FALSE(bench.engine->failed());
  };
  for (const ReadStatus status :
       {ReadStatus::PeerGone, ReadStatus::DeadlineExceeded, ReadStatus::AccessDenied}) {
    turned(BlockRead{{0, 0}, status}, FailureKind::ReadFailed, status);
  }
  turned(PostRefused{{0, 0}, Posted::PeerGone}, FailureKind::SourceLost, ReadStatus::Ok);
  turned(BlockDigested{{0, 0}, 7}, FailureKind::DigestMismatch, ReadStatus::Ok);
}

// An alternate that is no holder is asked at once, and only its own words count.
TEST(EngineSources, AnAlternateIsAsked) {
  Family bench(3);
  bench.have(1, 0, {0x0f}, 8);
  for (const std::uint32_t i : {0U, 1U}) bench.verify(i);
  bench.step(WorkerLost{WorkerId(1U)});
  ASSERT_EQ(bench.all<SendMessage>().size(), 1U);
  EXPECT_TRUE(bench.all<SendMessage>()[0].ask);
  EXPECT_EQ(bench.all<SendMessage>()[0].to, WorkerId(2U));
  for (const std::uint32_t i : {2U, 3U}) bench.step(BlockRead{{0, i}, ReadStatus::Cancelled});
  EXPECT_EQ(bench.reads(), Indices{}) << "worker 2 may not have what worker 1 had";
  bench.have(1, 0, {0xff}, 8);  // a late word
  EXPECT_EQ(bench.reads(), Indices{});
  EXPECT_EQ(bench.engine->ignored_messages(), 0U);
  bench.have(2, 0, {0x07}, 8);
  EXPECT_EQ(bench.reads(), Indices{2});
}

// The plan was too slow, or the parent's own parent is stuck: it would wait without end.
TEST(EngineSources, ParentsThatBringNothingAreGivenUp) {
  EngineConfig config;
  config.no_progress = seconds(5);
  config.ask_interval = seconds(100);
  Family bench(3, config);
  EXPECT_EQ(bench.next, bench.now + seconds(5));
  bench.now += seconds(5);
  bench.step(TimePassed{});
  ASSERT_EQ(bench.all<Reparented>().size(), 1U);  // to the alternate
  EXPECT_EQ(bench.all<Reparented>()[0].cause, FailureKind::NoProgress);
  EXPECT_EQ(bench.next, bench.now + seconds(5));
  bench.now += seconds(5);
  bench.step(TimePassed{});
  ASSERT_EQ(bench.all<NeedParent>().size(), 1U);
  EXPECT_EQ(bench.all<NeedParent>()[0].cause, FailureKind::NoProgress);
  // Whoever was asked may not have heard it, or had nobody to name.
  bench.now += seconds(5) - Time(1);
  bench.step(TimePassed{});
  EXPECT_TRUE(bench.all<NeedParent>().empty());
  bench.now += Time(1);
  bench.step(TimePassed{});
  ASSERT_EQ(bench.all<NeedParent>().size(), 1U);
  EXPECT_EQ(bench.all<NeedParent>()[0].lost, WorkerId(2U));
  EXPECT_TRUE(bench.all<Failed>().empty());
}

TEST(EngineSources, WithoutAnyoneLeftAParentIsWanted) {
  EngineConfig config;
  config.no_progress = seconds(5);
  Family bench(3, config);
  bench.have(1, 0, {0xff}, 8);
  bench.verify(0);
  bench.step(WorkerLost{WorkerId(2U)});  // the alternate goes first
  EXPECT_TRUE(bench.all<Reparented>().empty());
  bench.step(BlockRead{{0, 1}, ReadStatus::AccessDenied});
  ASSERT_EQ(bench.all<NeedParent>().size(), 1U);
  const NeedParent wanted = bench.all<NeedParent>()[0];
  EXPECT_EQ(wanted.first, 1U);
  EXPECT_EQ(wanted.lost, WorkerId(1U));
  EXPECT_EQ(wanted.cause, FailureKind::ReadFailed);
  EXPECT_EQ(wanted.status, ReadStatus::AccessDenied);
  bench.step(BlockRead{{0, 2}, ReadStatus::Cancelled});
  bench.step(BlockRead{{0, 3}, ReadStatus::Cancelled});
  EXPECT_TRUE(bench.said.empty()) << "said once";
  // An alternate mends it.
  bench.engine->add_alternate(StripeId(0U), WorkerId(4U), {}, true);
  EXPECT_TRUE(bench.engine->fresh());
  bench.step(TimePassed{});
  ASSERT_EQ(bench.all<Reparented>().size(), 1U);
  EXPECT_EQ(bench.all<Reparented>()[0].to, WorkerId(4U));
  EXPECT_EQ(bench.reads(), (Indices{1, 2, 3}));
  // It fails in turn and is not tried again; an assignment mends that.
  bench.step(BlockRead{{0, 1}, ReadStatus::DeadlineExceeded});
  ASSERT_EQ(bench.all<NeedParent>().size(), 1U);
  bench.engine->assign({StripeId(0U), WorkerId(1U), 1, 8, 3, true, {}, {}, {}});
  bench.step(TimePassed{});
  EXPECT_EQ(bench.reads(), Indices{}) << "two reads are open";
  bench.step(BlockRead{{0, 2}, ReadStatus::Cancelled});
  bench.step(BlockRead{{0, 3}, ReadStatus::Ok});
  EXPECT_EQ(bench.reads(), Indices{});
  bench.step(BlockDigested{{0, 3}, 103});
  ASSERT_EQ(bench.reads(), (Indices{1, 2, 4}));
  const EdgeNumber edge = bench.all<ReadBlock>()[0].at.edge;
  for (const std::uint32_t i : {1U, 2U, 4U, 5U, 6U, 7U}) bench.verify(i, edge);
  EXPECT_TRUE(bench.engine->complete());
}

// A named worker that was lost is alive again; one that fails is not turned to a second time.
TEST(EngineSources, AlternatesAreTakenInOrderAndOnce) {
  Family bench(1);
  bench.engine->add_alternate(StripeId(0U), WorkerId(2U), {}, true);
  bench.engine->add_alternate(StripeId(0U), WorkerId(3U), {}, true);
  bench.engine->add_alternate(StripeId(0U), WorkerId(4U), {}, true);
  bench.step(WorkerLost{WorkerId(3U)});
  const auto lose = [&](std::uint32_t worker) {
    bench.step(WorkerLost{WorkerId(worker)});
    const auto turned = bench.all<Reparented>();
    for (const std::uint32_t i : {0U, 1U, 2U}) {
      bench.step(BlockRead{{0, i}, ReadStatus::Cancelled});
    }
    return turned.empty() ? WorkerId() : turned[0].to;
  };
  EXPECT_EQ(lose(0), WorkerId(2U));
  EXPECT_EQ(lose(2), WorkerId(4U));
  EXPECT_EQ(lose(4), WorkerId());
  bench.engine->add_alternate(StripeId(0U), WorkerId(4U), {}, true);  // it is back
  bench.step(TimePassed{});
  ASSERT_EQ(bench.all<Reparented>().size(), 1U);
  EXPECT_EQ(bench.all<Reparented>()[0].to, WorkerId(4U));
}

// What was planned or named for an edge does not count for one that came instead of it: the new
// parent may hang below the old alternate.
TEST(EngineSources, ANewAssignmentHasNewAlternates) {
  for (const bool dropped : {true, false}) {
    SCOPED_TRACE(dropped);
    Family bench(2);
    bench.have(1, 0, {0xff}, 8);
    if (dropped) {
      bench.engine->add_alternate(StripeId(0U), WorkerId(3U), {}, true);
      bench.engine->drop(StripeId(0U));
    }
    bench.engine->assign({StripeId(0U), WorkerId(4U), 0, 8, 3, true, {}, {}, {}});
    bench.step(TimePassed{});
    for (const std::uint32_t i : {0U, 1U, 2U}) {
      bench.step(BlockRead{{0, i}, ReadStatus::Cancelled});
    }
    EXPECT_EQ(bench.reads(), (Indices{0, 1, 2}));
    bench.step(WorkerLost{WorkerId(4U)});
    EXPECT_TRUE(bench.all<Reparented>().empty());
    EXPECT_EQ(bench.all<NeedParent>().size(), 1U);
  }
}

TEST(EngineSources, AnExpectedChildIsToldOnceItAsks) {
  Bench bench(8, {0}, 1);
  bench.step(TimePassed{});
  bench.verify(0);
  bench.engine->expect_child({StripeId(0U), WorkerId(7U), {}, {}});
  bench.engine->expect_child({StripeId(0U), WorkerId(8U), {}, {}});
  bench.engine->add_child({StripeId(0U), WorkerId(9U), {}, {}});
  EXPECT_EQ(bench.engine->children(), 3U) << "expected ones keep their places";
  bench.step(TimePassed{});
  EXPECT_EQ(bench.told(), Told{{0}}) << "to worker 9 alone";
  bench.now += milliseconds(1);
  bench.ask(7, 0);
  EXPECT_EQ(bench.told(), Told{{0}});
  bench.now += milliseconds(1);
  bench.verify(1);
  EXPECT_EQ(bench.told().size(), 2U) << "to workers 7 and 9";
  bench.engine->remove_child(StripeId(0U), WorkerId(8U));
  bench.ask(8, 0);
  EXPECT_TRUE(bench.told().empty());
  EXPECT_EQ(bench.engine->ignored_messages(), 1U);
}

TEST(EngineSources, DropEndsAStripe) {
  Bench bench(8, {0}, 1);
  bench.step(TimePassed{});
  bench.verify(0);
  bench.engine->drop(StripeId(0U));
  EXPECT_TRUE(bench.engine->complete());
  EXPECT_TRUE(bench.engine->fresh());
  EXPECT_EQ(bench.engine->open_work(), 3U);
  bench.step(TimePassed{});
  ASSERT_EQ(bench.said.size(), 1U);
  EXPECT_EQ(bench.all<CancelReads>().size(), 1U);
  bench.step(BlockRead{{0, 1}, ReadStatus::Ok});  // it was too late to cancel
  bench.step(BlockDigested{{0, 1}, 101});
  EXPECT_EQ(bench.all<BlockVerified>().size(), 1U);
  EXPECT_TRUE(bench.all<Completed>().empty());
  EXPECT_TRUE(bench.engine->has(StripeId(0U), 1));
  bench.step(PostRefused{{0, 2}, Posted::WouldBlock});
  bench.step(BlockRead{{0, 3}, ReadStatus::Cancelled});
  EXPECT_TRUE(bench.said.empty());
  EXPECT_EQ(bench.engine->open_work(), 0U);
  EXPECT_EQ(bench.next, Time::never());
  EXPECT_EQ(bench.engine->first_missing(StripeId(0U)), 2U);
  // The place of what is over is used again: storms do not grow the engine.
  for (int k = 0; k < 100; ++k) {
    bench.engine->assign({StripeId(0U), WorkerId(0U), 2, 8, 3, true, {}, {}, {}});
    bench.step(TimePassed{});
    EXPECT_EQ(bench.reads(), (Indices{2, 3, 4}));
    const EdgeNumber edge = bench.all<ReadBlock>()[0].at.edge;
    bench.engine->drop(StripeId(0U));
    bench.step(TimePassed{});
    for (const std::uint32_t i : {2U, 3U, 4U}) {
      bench.step(BlockRead{{edge, i}, ReadStatus::Cancelled});
    }
  }
  EXPECT_LE(bench.engine->assignments(), 2U);
}

// Several given within one step: the last one counts, and waits for the reads of the first.
TEST(EngineSources, AnAssignmentReplacesWhatOverlaps) {
  Bench bench(8, {0}, 1);
  bench.step(TimePassed{});
  EXPECT_EQ(bench.reads(), (Indices{0, 1, 2}));
  bench.engine->assign({StripeId(0U), WorkerId(5U), 0, 8, 3, true, {}, {}, {}});
  const EdgeNumber last =
      bench.engine->assign({StripeId(0U), WorkerId(6U), 0, 8, 3, true, {}, {}, {}});
  EXPECT_EQ(bench.engine->missing(), 8U);
  bench.step(TimePassed{});
  EXPECT_EQ(bench.all<CancelReads>().size(), 1U);
  EXPECT_EQ(bench.reads(), Indices{});
  for (const std::uint32_t i : {0U, 1U, 2U}) {
    bench.step(BlockRead{{0, i}, ReadStatus::Cancelled});
  }
  EXPECT_EQ(bench.reads(), (Indices{0, 1, 2}));
  EXPECT_EQ(bench.all<ReadBlock>()[0].at.edge, last);
  EXPECT_EQ(bench.engine->assignment(last).parent, WorkerId(6U));
}

TEST(EngineSources, OnlyPlannedChildrenAreTakenForAsking) {
  Family two(2);
  two.have(1, 0, {0xff}, 8);
  two.verify(0);
  EXPECT_TRUE(two.told().empty());
  two.ask(4, 0);  // neither child nor planned
  EXPECT_TRUE(two.told().empty());
  EXPECT_EQ(two.engine->ignored_messages(), 1U);
  two.ask(3, 0);
  EXPECT_EQ(two.told(), Told{{0}});
  EXPECT_FALSE(two.engine->fresh());
  EXPECT_EQ(two.engine->children(), 1U);
  two.ask(3, 0);
  EXPECT_EQ(two.engine->children(), 1U) << "taken once";
  two.now += milliseconds(1);
  two.verify(1);
  EXPECT_EQ(two.told(), (Told{{0, 1}})) << "a child like others from now on";
  two.engine->remove_child(StripeId(0U), WorkerId(3U));
  two.now += milliseconds(1);
  two.verify(2);
  EXPECT_TRUE(two.told().empty());
  // The holder answers its planned children and those whose alternate it is.
  Family holder(0);
  for (const std::uint32_t from : {1U, 2U}) {
    holder.ask(from, 0);
    EXPECT_EQ(holder.told(), (Told{{0, 1, 2, 3, 4, 5, 6, 7}}));
  }
  holder.ask(3, 0);
  EXPECT_TRUE(holder.told().empty());
  EXPECT_EQ(holder.engine->children(), 0U);
}

TEST(EngineSources, AChildAddedAgainIsToldAgain) {
  Family bench(1);
  bench.verify(0);
  bench.now += milliseconds(1);
  EXPECT_EQ(bench.engine->children(), 2U);
  bench.engine->add_child({StripeId(0U), WorkerId(2U), {}, {}});
  bench.step(TimePassed{});
  EXPECT_EQ(bench.told(), Told{{0}});
  EXPECT_EQ(bench.engine->children(), 2U);
  bench.step(WorkerLost{WorkerId(3U)});
  bench.engine->add_child({StripeId(0U), WorkerId(4U), {}, {}});
  bench.step(TimePassed{});
  EXPECT_EQ(bench.all<SendMessage>()[0].to, WorkerId(4U));
  EXPECT_EQ(bench.engine->children(), 2U) << "in the place of the one that is gone";
}

// Rule 11. Two stripes from two parents into one port.
TEST(EngineSources, BudgetsHold) {
  const auto reads_at_once = [](EngineConfig config, bool one_parent) {
    Demand demand = simple_demand(2, 16, kBlock);
    demand.classes[0].holders = {WorkerId(0U), WorkerId(2U)};
    demand.classes[0].receivers = {WorkerId(1U)};
    Plan plan = tree_plan(demand, {0}, 6);
    plan.stripes.push_back(plan.stripes[0]);
    plan.stripes[0].blocks = {0, 2, 16};
    plan.stripes[1].blocks = {1, 2, 16};
    if (!one_parent) plan.stripes[1].edges[0].parent = WorkerId(2U);
    Bench bench(16, {0}, 1);
    bench.engine = std::make_unique<WorkerEngine>(tables_for(demand, plan), WorkerId(1U), config);
    bench.step(TimePassed{});
    return bench.reads().size();
  };
  EngineConfig config;
  EXPECT_EQ(reads_at_once(config, true), 12U);
  config.peer_reads = 5;
  EXPECT_EQ(reads_at_once(config, true), 5U);
  EXPECT_EQ(reads_at_once(config, false), 10U) << "one peer cannot use up the other's";
  config = {};
  config.port_reads = 7;
  EXPECT_EQ(reads_at_once(config, false), 7U);
  config = {};
  config.port_bytes = kBlock * 4;
  EXPECT_EQ(reads_at_once(config, false), 4U);
  config.port_bytes = Bytes(1);
  EXPECT_EQ(reads_at_once(config, false), 1U) << "one is always allowed";
}

// Whom a budget holds up takes turns.
TEST(EngineSources, BudgetsAreSharedInTurns) {
  const Demand demand = simple_demand(1, 60, kBlock);
  Plan plan = tree_plan(demand, {0}, 4);
  for (std::uint32_t s = 1; s < 3; ++s) plan.stripes.push_back(plan.stripes[0]);
  for (std::uint32_t s = 0; s < 3; ++s) plan.stripes[s].blocks = {s, 3, 60};
  EngineConfig config;
  config.port_reads = 4;
  Bench bench(60, {0}, 1);
  bench.engine = std::make_unique<WorkerEngine>(tables_for(demand, plan), WorkerId(1U), config);
  bench.step(TimePassed{});
  std::vector<EdgeBlock> open;
  std::array<std::uint32_t, 3> done{};
  for (const ReadBlock& read : bench.all<ReadBlock>()) open.push_back(read.at);
  for (int k = 0; k < 30; ++k) {
    ASSERT_EQ(open.size(), 4U);
    const EdgeBlock first = open.front();
    open.erase(open.begin());
    ++done[first.edge];
    bench.step(BlockRead{first, ReadStatus::Ok});
    for (const ReadBlock& read : bench.all<ReadBlock>()) open.push_back(read.at);
  }
  for (const std::uint32_t count : done) EXPECT_GE(count, 7U);
}

}  // namespace
}  // namespace holdfast::testing
