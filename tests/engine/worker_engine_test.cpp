// The rules of worker_engine.hpp, one by one, without a network.
#include "core/engine/worker_engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "tests/engine/engine_bench.hpp"

namespace holdfast::testing {
namespace {

TEST(WorkerEngine, ReadsAHolderAtOnceInOrderWithinTheWindow) {
  Bench bench(8, {0}, 1);
  bench.step(TimePassed{});
  EXPECT_EQ(bench.reads(), (Indices{0, 1, 2}));
  EXPECT_EQ(bench.all<ReadBlock>()[0].deadline, bench.now + EngineConfig{}.read_deadline);
  for (std::uint32_t i = 0; i < 8; ++i) {
    SCOPED_TRACE(i);
    bench.step(BlockRead{{0, i}, ReadStatus::Ok});
    EXPECT_EQ(bench.reads(), i + 3 < 8 ? Indices{i + 3} : Indices{});
    ASSERT_EQ(bench.all<DigestBlock>().size(), 1U);
    EXPECT_EQ(bench.all<DigestBlock>()[0].block, BlockId(i));
    EXPECT_FALSE(bench.engine->complete());
    bench.step(BlockDigested{{0, i}, 100 + i});
    EXPECT_EQ(bench.all<BlockVerified>().size(), 1U);
    EXPECT_EQ(bench.all<Completed>().size(), i == 7 ? 1U : 0U);
  }
  EXPECT_TRUE(bench.engine->complete());
  EXPECT_EQ(bench.next, Time::never());
}

TEST(WorkerEngine, WaitsForAParentsWord) {
  Bench bench(8, {0, 1}, 2);
  bench.step(TimePassed{});
  EXPECT_EQ(bench.reads(), Indices{});
  bench.have(1, 0, {0b1010}, 4);  // not the first one
  EXPECT_EQ(bench.reads(), Indices{});
  bench.have(1, 0, {0b1001}, 4);
  EXPECT_EQ(bench.reads(), (Indices{0, 1}));  // 2 is not there
  bench.have(1, 0, {0b0100}, 4);
  EXPECT_EQ(bench.reads(), Indices{2});
  bench.have(1, 0, {0xff}, 8);  // the window is full
  EXPECT_EQ(bench.reads(), Indices{});
  bench.step(BlockRead{{0, 0}, ReadStatus::Ok});
  EXPECT_EQ(bench.reads(), Indices{3});
}

TEST(WorkerEngine, TellsChildrenOnlyWhatIsVerified) {
  Bench bench(8, {0, 1, 1}, 1);
  bench.step(TimePassed{});
  bench.step(BlockRead{{0, 0}, ReadStatus::Ok});
  EXPECT_EQ(bench.told(), Told{});
  bench.step(BlockRead{{0, 1}, ReadStatus::Ok});
  bench.step(BlockDigested{{0, 1}, 101});  // digests may overtake each other
  EXPECT_EQ(bench.told(), (Told{{1}, {1}}));
  std::vector<WorkerId> to;
  for (const SendMessage& send : bench.all<SendMessage>()) to.push_back(send.to);
  std::sort(to.begin(), to.end());
  EXPECT_EQ(to, (std::vector<WorkerId>{WorkerId(2U), WorkerId(3U)}));
}

TEST(WorkerEngine, WithoutVerificationCountsAtOnce) {
  Bench bench(1, {0, 1}, 1, 2, {}, false);
  bench.step(TimePassed{});
  bench.step(BlockRead{{0, 0}, ReadStatus::Ok});
  EXPECT_TRUE(bench.all<DigestBlock>().empty());
  EXPECT_EQ(bench.told(), Told{{0}});
  EXPECT_EQ(bench.all<Completed>().size(), 1U);
}

// Rule 4: the second word waits for the interval and takes along what comes until then.
TEST(WorkerEngine, WordsAreMergedWithinTheInterval) {
  Bench bench(8, {0, 1}, 1, 8);
  const Time interval = EngineConfig{}.least_have_interval;
  bench.step(TimePassed{});
  bench.verify(0);
  EXPECT_EQ(bench.told(), Told{{0}});
  const Time first = bench.now;
  bench.now = first + microseconds(1);
  bench.verify(1);
  EXPECT_EQ(bench.told(), Told{});
  EXPECT_EQ(bench.next, first + interval);
  EXPECT_FALSE(bench.engine->told_everything());
  bench.now = first + microseconds(19);
  bench.verify(2);
  EXPECT_EQ(bench.told(), Told{});
  bench.now = first + interval - Time(1);
  bench.step(TimePassed{});
  EXPECT_EQ(bench.told(), Told{});
  bench.now = first + interval;
  bench.step(TimePassed{});
  EXPECT_EQ(bench.told(), (Told{{0, 1, 2}}));
  bench.now = first + interval * 2;
  bench.verify(3);
  EXPECT_EQ(bench.told(), (Told{{0, 1, 2, 3}}));
  bench.now = first + interval * 4;
  bench.verify(4);
  EXPECT_EQ(bench.told().size(), 1U);  // at once again
}

TEST(WorkerEngine, IntervalIsAQuarterOfTheBlockTimeWhereThatIsMore) {
  Bench bench(8, {0}, 1, 8);
  bench.engine->add_child({StripeId(0U), WorkerId(0U), {}, milliseconds(3)});
  bench.step(TimePassed{});
  bench.verify(0);
  bench.verify(1);
  EXPECT_EQ(bench.next, bench.now + milliseconds(3));
}

// Each message repeats the words of bitmap before its news, and a long gap takes several messages.
TEST(WorkerEngine, MessagesRepeatAndAreLimited) {
  constexpr std::uint32_t kBlocks = 10'000;
  Bench bench(kBlocks, {0, 1}, 1, 4096);
  bench.step(TimePassed{});
  bench.verify(0);
  bench.now += milliseconds(1);
  for (std::uint32_t i = 1; i < 130; ++i) bench.verify(i);
  bench.now += milliseconds(1);
  bench.step(TimePassed{});
  bench.now += milliseconds(1);
  bench.verify(130);
  ASSERT_EQ(bench.told().size(), 1U);
  EXPECT_EQ(bench.told()[0].front(), 64U);
  EXPECT_EQ(bench.told()[0].back(), 130U);
  for (std::uint32_t i = 131; i < kBlocks; ++i) bench.verify(i);
  bench.engine->add_child({StripeId(0U), WorkerId(7U), {}, {}});
  bench.step(TimePassed{});
  Indices all;
  for (const Indices& part : bench.told()) all.insert(all.end(), part.begin(), part.end());
  ASSERT_EQ(bench.told().size(), 3U);
  ASSERT_EQ(all.size(), kBlocks);
  for (std::uint32_t i = 0; i < kBlocks; ++i) ASSERT_EQ(all[i], i);
}

// Rule 5.
TEST(WorkerEngine, AsksAgainLessAndLessOften) {
  EngineConfig config;
  config.ask_interval = milliseconds(10);
  config.ask_interval_most = milliseconds(35);
  Bench bench(200, {0, 1}, 2, 3, config);
  bench.step(TimePassed{});
  Time last = bench.now;
  for (const std::int64_t wait : {10, 20, 35, 35}) {
    SCOPED_TRACE(wait);
    EXPECT_EQ(bench.next, last + milliseconds(wait));
    bench.now = bench.next;
    bench.step(TimePassed{});
    ASSERT_EQ(bench.all<SendMessage>().size(), 1U);
    EXPECT_TRUE(bench.all<SendMessage>()[0].ask);
    EXPECT_EQ(bench.all<SendMessage>()[0].to, WorkerId(1U));
    EXPECT_EQ(bench.all<SendMessage>()[0].first, 0U);
    last = bench.now;
  }
  bench.have(1, 0, {0}, 64);  // no news: no reason to ask sooner
  EXPECT_EQ(bench.next, last + milliseconds(35));
  bench.have(1, 0, {1}, 1);  // news
  EXPECT_EQ(bench.next, last + milliseconds(10));
  // Who has all it can post does not ask.
  bench.have(1, 0, {0xff}, 8);
  bench.now = last + milliseconds(10);
  bench.step(TimePassed{});
  EXPECT_TRUE(bench.all<SendMessage>().empty());
  // The ask names the first block that is not known, rounded down to a word of the bitmap.
  bench.have(1, 0, {~0ULL, 1}, 65);
  for (std::uint32_t i = 0; i < 65; ++i) bench.verify(i);
  bench.now += milliseconds(100);
  bench.step(TimePassed{});
  ASSERT_EQ(bench.all<SendMessage>().size(), 1U);
  EXPECT_EQ(bench.all<SendMessage>()[0].first, 64U);
}

TEST(WorkerEngine, AnswersAsks) {
  Bench bench(100, {0, 1}, 1, 100);
  bench.step(TimePassed{});
  bench.ask(2, 0);
  EXPECT_EQ(bench.told(), Told{{}});  // a sign of life
  for (std::uint32_t i = 0; i < 70; ++i) bench.verify(i);
  bench.ask(2, 64);
  EXPECT_EQ(bench.told(), (Told{{64, 65, 66, 67, 68, 69}}));
  EXPECT_EQ(bench.engine->ignored_messages(), 0U);
  bench.ask(0, 0);    // not a child
  bench.ask(2, 128);  // beyond the stripe
  EXPECT_TRUE(bench.told().empty());
  EXPECT_EQ(bench.engine->ignored_messages(), 2U);
}

TEST(WorkerEngine, HoldersAnswerAsksWithEverything) {
  Bench bench(70, {0, 1}, 0);
  bench.step(TimePassed{});
  EXPECT_TRUE(bench.said.empty());
  EXPECT_TRUE(bench.engine->complete());
  bench.ask(1, 64);
  EXPECT_EQ(bench.told(), (Told{{64, 65, 66, 67, 68, 69}}));
  bench.ask(2, 0);  // reads from worker 1
  EXPECT_TRUE(bench.told().empty());
}

TEST(WorkerEngine, IgnoresWhatMakesNoSense) {
  Bench bench(8, {0, 1}, 2);
  bench.step(TimePassed{});
  bench.have(0, 0, {0xff}, 8);             // not its parent
  bench.have(1, 0, {0xff}, 8, {1, 3});     // another version
  bench.have(1, 0, {0xff}, 8, {1, 2}, 1);  // a stripe that is not there
  bench.have(1, 0, {0x1ff}, 9);            // beyond the stripe
  bench.have(1, 64, {0xff}, 1);
  bench.have(1, 0, {0xff}, 8, {1, 2}, 0, 7);  // another transfer of the version
  const std::array<std::byte, 3> noise{};
  bench.step(MessageFrom{WorkerId(1U), noise});
  EXPECT_TRUE(bench.said.empty());
  EXPECT_EQ(bench.engine->ignored_messages(), 7U);
}

TEST(WorkerEngine, RefusedReadsArePostedAgainInOrder) {
  Bench bench(8, {0}, 1, 4);
  bench.step(TimePassed{});
  EXPECT_EQ(bench.reads(), (Indices{0, 1, 2, 3}));
  bench.step(PostRefused{{0, 2}, Posted::WouldBlock});
  EXPECT_EQ(bench.reads(), Indices{});
  bench.step(PostRefused{{0, 3}, Posted::WouldBlock});
  EXPECT_EQ(bench.reads(), Indices{});
  bench.step(BlockRead{{0, 0}, ReadStatus::Ok});
  EXPECT_EQ(bench.reads(), (Indices{2, 3, 4}));
  // With nothing under way, time brings it back.
  Bench idle(8, {0}, 1, 4);
  idle.step(TimePassed{});
  for (std::uint32_t i = 0; i < 4; ++i) idle.step(PostRefused{{0, i}, Posted::WouldBlock});
  EXPECT_EQ(idle.next, idle.now + EngineConfig{}.retry_interval);
  idle.now = idle.next;
  idle.step(TimePassed{});
  EXPECT_EQ(idle.reads(), (Indices{0, 1, 2, 3}));
}

TEST(WorkerEngine, AssignmentsMayBeAddedWhileItRuns) {
  Bench bench(8, {0}, 1, 8);
  // Worker 1 of another plan: nothing assigned yet.
  const Demand demand = simple_demand(2, 8, kBlock);
  Plan plan = tree_plan(demand, {0, 0}, 2);
  plan.stripes[0].edges.clear();
  bench.engine =
      std::make_unique<WorkerEngine>(tables_for(demand, plan), WorkerId(1U), EngineConfig{});
  bench.step(TimePassed{});
  EXPECT_TRUE(bench.said.empty());
  EXPECT_TRUE(bench.engine->complete());
  Assignment first{StripeId(0U), WorkerId(0U), 0, 3, 8, true, {}, {}};
  EXPECT_EQ(bench.engine->assign(first), 0U);
  EXPECT_TRUE(bench.engine->fresh());
  bench.step(TimePassed{});
  EXPECT_EQ(bench.reads(), (Indices{0, 1, 2}));
  // The rest from another worker, who must say what it has: only words about its own range count.
  EXPECT_EQ(bench.engine->assign({StripeId(0U), WorkerId(2U), 3, 8, 8, false, {}, {}}), 1U);
  bench.step(TimePassed{});
  EXPECT_EQ(bench.reads(), Indices{});
  // It is asked at once: its word may have come before this worker knew it for a parent.
  ASSERT_EQ(bench.all<SendMessage>().size(), 1U);
  EXPECT_TRUE(bench.all<SendMessage>()[0].ask);
  EXPECT_EQ(bench.all<SendMessage>()[0].to, WorkerId(2U));
  bench.have(2, 0, {0xff}, 5);
  EXPECT_EQ(bench.reads(), (Indices{3, 4}));
  EXPECT_EQ(bench.all<ReadBlock>()[0].at.edge, 1U);
  for (std::uint32_t i = 0; i < 3; ++i) bench.verify(i);
  EXPECT_TRUE(bench.all<Completed>().empty());
  bench.have(2, 0, {0xff}, 8);
  for (std::uint32_t i = 3; i < 8; ++i) bench.verify(i, 1);
  EXPECT_EQ(bench.all<Completed>().size(), 1U);
  // What is verified is not read again.
  bench.engine->assign({StripeId(0U), WorkerId(0U), 0, 8, 8, true, {}, {}});
  bench.step(TimePassed{});
  EXPECT_TRUE(bench.reads().empty());
  EXPECT_TRUE(bench.engine->complete());
}

TEST(WorkerEngine, NewChildrenHearWhatIsThere) {
  Bench bench(8, {0}, 1, 8);
  bench.step(TimePassed{});
  bench.verify(0);
  bench.verify(2);
  bench.engine->add_child({StripeId(0U), WorkerId(5U), {}, {}});
  EXPECT_FALSE(bench.engine->told_everything());
  bench.step(TimePassed{});
  EXPECT_EQ(bench.told(), (Told{{0, 2}}));
  EXPECT_EQ(bench.all<SendMessage>()[0].to, WorkerId(5U));
  // Of a holder too.
  Bench holder(8, {0}, 0);
  holder.engine->add_child({StripeId(0U), WorkerId(5U), {}, {}});
  holder.step(TimePassed{});
  EXPECT_EQ(holder.told(), (Told{{0, 1, 2, 3, 4, 5, 6, 7}}));
}

TEST(WorkerEngine, FailuresNameEverything) {
  EngineConfig config;
  config.await_parent = false;
  Bench read(8, {0}, 1, 3, config);
  read.step(TimePassed{});
  read.step(BlockRead{{0, 1}, ReadStatus::AccessDenied});
  ASSERT_EQ(read.all<Failed>().size(), 1U);
  EXPECT_EQ(to_string(read.all<Failed>()[0].failure),
            "ReadFailed: worker 1 needs block 1 (stripe 0) from worker 0: the read ended with "
            "'access denied'");
  EXPECT_TRUE(read.engine->failed());
  read.step(BlockRead{{0, 0}, ReadStatus::Ok});
  EXPECT_TRUE(read.said.empty()) << "Failed is the last command";

  Bench digest(8, {0}, 1, 3, config);
  digest.step(TimePassed{});
  digest.step(BlockRead{{0, 2}, ReadStatus::Ok});
  digest.step(BlockDigested{{0, 2}, 0xabc});
  ASSERT_EQ(digest.all<Failed>().size(), 1U);
  EXPECT_EQ(to_string(digest.all<Failed>()[0].failure),
            "DigestMismatch: worker 1 needs block 2 (stripe 0) from worker 0: its digest is "
            "0000000000000abc, the version's is 0000000000000066");
  EXPECT_TRUE(digest.all<BlockVerified>().empty());

  Bench gone(8, {0}, 1, 3, config);
  gone.step(TimePassed{});
  gone.verify(0);
  gone.step(WorkerLost{WorkerId(7U)});  // nobody we know
  EXPECT_TRUE(gone.said.empty());
  gone.step(WorkerLost{WorkerId(0U)});
  ASSERT_EQ(gone.all<Failed>().size(), 1U);
  EXPECT_EQ(to_string(gone.all<Failed>()[0].failure),
            "SourceLost: worker 1 needs block 1 (stripe 0) from worker 0: that worker is gone");

  Bench refused(8, {0}, 1, 3, config);
  refused.step(TimePassed{});
  refused.step(PostRefused{{0, 0}, Posted::PeerGone});
  ASSERT_EQ(refused.all<Failed>().size(), 1U);
  EXPECT_EQ(refused.all<Failed>()[0].failure.kind, FailureKind::SourceLost);
}

TEST(WorkerEngine, NoProgressIsAnError) {
  EngineConfig config;
  config.no_progress = seconds(5);
  config.ask_interval = seconds(100);
  config.await_parent = false;
  Bench bench(8, {0, 1}, 2, 3, config);
  bench.step(TimePassed{});
  EXPECT_EQ(bench.next, bench.now + seconds(5));
  bench.now += seconds(4);
  bench.have(1, 0, {1}, 1);
  bench.now += seconds(4);
  bench.verify(0);
  EXPECT_EQ(bench.next, bench.now + seconds(5));
  bench.have(1, 0, {1}, 1);  // old news: no progress
  bench.now += seconds(5) - Time(1);
  bench.step(TimePassed{});
  EXPECT_TRUE(bench.all<Failed>().empty());
  bench.now += Time(1);
  bench.step(TimePassed{});
  ASSERT_EQ(bench.all<Failed>().size(), 1U);
  EXPECT_EQ(to_string(bench.all<Failed>()[0].failure),
            "NoProgress: worker 2 needs block 1 (stripe 0) from worker 1: nothing arrived for "
            "5.00 s");
}

TEST(WorkerEngine, LostChildrenAreForgotten) {
  Bench bench(8, {0, 1, 1}, 1, 8);
  bench.step(TimePassed{});
  bench.verify(0);
  bench.verify(1);  // both wait for their interval
  bench.step(WorkerLost{WorkerId(2U)});
  bench.now = bench.next;
  bench.step(TimePassed{});
  ASSERT_EQ(bench.all<SendMessage>().size(), 1U);
  EXPECT_EQ(bench.all<SendMessage>()[0].to, WorkerId(3U));
}

}  // namespace
}  // namespace holdfast::testing
