// Workloads over a service whose times are known, so that each moment of a run can be worked out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/workload_codec.hpp"
#include "sim/workload_run.hpp"
#include "tests/sim/fake_service.hpp"
#include "tests/workload/small_machine.hpp"

namespace holdfast::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr GroupId kTrainer(0U);
constexpr GroupId kNear(1U);
constexpr GroupId kFar(2U);
constexpr GroupId kStage(3U);

// The trainer on dc0.r0.h0, rollouts on dc0.r0.h1 and dc1.r0.h0, staging in dc1.r1.h0.mem: ten
// blocks of a megabyte, two GPUs a group with five of them each.
struct Bench {
  Topology topology = small_machine::topology();
  ServiceSetup setup;
  WorkloadRun run;
  FakeService::Times times;

  Bench() {
    ModelSpace space("job", "model", Bytes(1'000'000), std::vector<Bytes>(10, Bytes(1'000'000)));
    space.add_layout("tp2", {{{BlockId(0U), 5}}, {{BlockId(5U), 5}}});
    space.add_layout("whole", {{{BlockId(0U), 10}}});
    setup.spaces.push_back(std::make_shared<const ModelSpace>(std::move(space)));
    add("trainer[0]", "dc0.r0.h0", Plays::Trainer);
    add("near[0]", "dc0.r0.h1", Plays::Rollout);
    add("far[0]", "dc1.r0.h0", Plays::Rollout);
  }

  void add(const std::string& name, const std::string& host, Plays plays) {
    ServiceGroup group;
    group.name = name;
    group.space = SpaceId(0U);
    group.trainer = plays == Plays::Trainer;
    for (const char* gpu : {".gpu0", ".gpu1"}) {
      group.members.push_back(topology.find_node(host + gpu));
    }
    setup.groups.push_back(std::move(group));
    run.groups.push_back({plays, 2, Destination::InPlace, {}, true});
  }

  void add_staging() {
    ServiceGroup group;
    group.name = "stage[0]";
    group.space = SpaceId(0U);
    group.layout = 1;
    group.members.push_back(topology.find_node("dc1.r1.h0.mem"));
    setup.groups.push_back(std::move(group));
    run.groups.push_back({Plays::Staging, 0, Destination::Shadow, {}, true});
    run.groups[kFar.index()].stages = {kStage};
  }

  // Two slots a replica, rollouts of a second, batches of four, steps of ten seconds, the last two
  // of which overwrite.
  Generation& generate(bool synchronous) {
    run.generation.emplace();
    Generation& loop = *run.generation;
    loop.synchronous = synchronous;
    loop.batch = 4;
    loop.lengths = Distribution::table({{100, 1'000'000}});
    loop.token_time = milliseconds(10);
    loop.slots = 2;
    loop.steps = 1;
    loop.step_time = seconds(10);
    loop.write_time = seconds(2);
    return loop;
  }

  std::optional<FakeService> service;
  WorkloadOutcome go() {
    if (!service) service.emplace(setup, times);
    return run_workload(topology, setup, run, *service);
  }
};

std::vector<std::string> waits_of(const WorkloadOutcome& out, GroupId group) {
  std::vector<std::string> waits;
  for (const Wait& wait : out.groups[group.index()].waits) {
    const char* part = wait.part == StallPart::Rollout   ? "rollout"
                       : wait.part == StallPart::Trainer ? "trainer"
                                                         : "offload";
    waits.push_back(std::string(part) + " " + to_string(wait.from) + ".." + to_string(wait.to));
  }
  return waits;
}

std::vector<std::string> fetches_of(const WorkloadOutcome& out, GroupId group) {
  std::vector<std::string> fetches;
  for (const FetchRecord& fetch : out.fetches) {
    if (fetch.group != group.value()) continue;
    fetches.push_back(to_string(fetch.version) + (fetch.completed ? " " : " not ") +
                      to_string(fetch.requested) + ".." + to_string(fetch.ended));
  }
  return fetches;
}

TEST(WorkloadRun, OneUpdateIsPublishedAndFetched) {
  Bench bench;
  const WorkloadOutcome out = bench.go();
  EXPECT_EQ(out.failure, std::nullopt);
  EXPECT_EQ(out.length, seconds(5));
  EXPECT_EQ(out.versions, 1U);
  EXPECT_THAT(waits_of(out, kTrainer), ElementsAre("trainer 0ps..1s"));
  EXPECT_THAT(waits_of(out, kNear), ElementsAre("rollout 1s..5s"));
  EXPECT_THAT(fetches_of(out, kFar), ElementsAre("1.1 1s..5s"));
  EXPECT_EQ(out.deliveries, 20U);
  ASSERT_THAT(out.held, SizeIs(3));
  EXPECT_EQ(out.held[0].group, kTrainer);
  EXPECT_EQ(out.held[0].to, Time::never());
  EXPECT_EQ(out.held[1].from, seconds(1));
  const FetchRecord& fetch = out.fetches.front();
  EXPECT_EQ(fetch.gpus, 2U);
  EXPECT_EQ(fetch.workers, 2U);
  EXPECT_TRUE(fetch.in_place && fetch.generates);
}

TEST(WorkloadRun, SynchronousLoopTakesTurns) {
  Bench bench;
  bench.generate(true);
  const WorkloadOutcome out = bench.go();
  // Fetch until 5, a batch until 6, train until 14, unpublish, overwrite until 17, publish, fetch.
  EXPECT_EQ(out.length, seconds(22));
  EXPECT_EQ(out.finished, 4U);
  EXPECT_EQ(out.stale, 0U);
  EXPECT_THAT(waits_of(out, kTrainer),
              ElementsAre("trainer 0ps..1s", "trainer 14s..15s", "trainer 17s..18s"));
  EXPECT_THAT(waits_of(out, kNear), ElementsAre("rollout 1s..5s", "rollout 18s..22s"));
  EXPECT_THAT(fetches_of(out, kNear), ElementsAre("1.1 1s..5s", "1.2 18s..22s"));
}

TEST(WorkloadRun, SynchronousBatchIsSharedOutAndNeverExceeded) {
  Bench bench;
  bench.generate(true).batch = 7;  // of two replicas with two slots: 4, then 3
  const WorkloadOutcome out = bench.go();
  EXPECT_EQ(out.finished, 7U);
  EXPECT_EQ(out.length, seconds(23));
}

TEST(WorkloadRun, SynchronousPartialRolloutsGoOnUnderTheNextVersion) {
  Bench bench;
  Generation& loop = bench.generate(true);
  loop.partial = true;
  loop.batch = 3;
  loop.steps = 2;
  // Generation from 5 until 6: four end together, of which one is too old for the next batch. Four
  // others begin in that moment and stand still.
  const WorkloadOutcome out = bench.go();
  EXPECT_EQ(out.finished, 8U);
  EXPECT_EQ(out.stale, 1U);
  EXPECT_EQ(out.length, seconds(39));
}

TEST(WorkloadRun, AsynchronousPartialRolloutsAreInterruptedAtOnce) {
  Bench bench;
  Generation& loop = bench.generate(false);
  loop.partial = true;
  loop.lengths = Distribution::table({{800, 1'000'000}});
  // Generate 5..13: a batch. Train 13..21, unpublish 22, overwrite 24, publish 25; two more batches
  // are done at 21; the last begun have 4 s to go when the fetch begins.
  const WorkloadOutcome out = bench.go();
  EXPECT_THAT(fetches_of(out, kNear), ElementsAre("1.1 1s..5s", "1.2 25s..29s"));
  EXPECT_EQ(out.finished, 8U);
  EXPECT_EQ(out.length, seconds(29));
}

TEST(WorkloadRun, AsynchronousRolloutsAreFinishedBeforeAFetch) {
  Bench bench;
  Generation& loop = bench.generate(false);
  loop.lengths = Distribution::table({{800, 1'000'000}});
  const WorkloadOutcome out = bench.go();
  // As above, but the rollouts of 21 end at 29 first; waiting for that is no stall.
  EXPECT_THAT(fetches_of(out, kNear), ElementsAre("1.1 1s..5s", "1.2 29s..33s"));
  EXPECT_THAT(waits_of(out, kNear), ElementsAre("rollout 1s..5s", "rollout 29s..33s"));
  EXPECT_EQ(out.finished, 12U);
}

TEST(WorkloadRun, RolloutsThatAreTooOldAreThrownAway) {
  Bench bench;
  Generation& loop = bench.generate(false);
  loop.partial = true;
  loop.steps = 2;
  loop.batch = 1;
  loop.staleness = 0;
  // Four end at 6, one is taken; until the version of 18 comes four others end each second, from 7
  // to 17; those that would end at 18 are interrupted just before and end under version 2.
  const WorkloadOutcome strict = bench.go();
  EXPECT_EQ(strict.stale, 47U);
  bench.service.reset();
  loop.staleness = 1;
  const WorkloadOutcome loose = bench.go();
  EXPECT_EQ(loose.stale, 0U);
  EXPECT_LT(loose.length, strict.length);
}

TEST(WorkloadRun, AShadowFetchIsNoWaitAfterTheFirst) {
  Bench bench;
  Generation& loop = bench.generate(false);
  loop.partial = true;
  for (WorkloadGroup& group : bench.run.groups) group.destination = Destination::Shadow;
  const WorkloadOutcome out = bench.go();
  EXPECT_THAT(waits_of(out, kNear), ElementsAre("rollout 1s..5s"));
  EXPECT_THAT(fetches_of(out, kNear), ElementsAre("1.1 1s..5s", "1.2 18s..22s"));
  EXPECT_FALSE(out.fetches.back().in_place);
}

TEST(WorkloadRun, FarRolloutsWaitForStagingAndGenerateMeanwhile) {
  Bench bench;
  bench.add_staging();
  Generation& loop = bench.generate(false);
  loop.partial = true;
  const WorkloadOutcome out = bench.go();
  EXPECT_THAT(fetches_of(out, kStage), ElementsAre("1.1 1s..5s", "1.2 19s..23s"));
  EXPECT_THAT(fetches_of(out, kNear), ElementsAre("1.1 1s..5s", "1.2 19s..23s"));
  EXPECT_THAT(fetches_of(out, kFar), ElementsAre("1.1 5s..9s", "1.2 23s..27s"));
  // Nothing ran at first; later the old version did until its own fetch.
  EXPECT_THAT(waits_of(out, kFar), ElementsAre("rollout 1s..9s", "rollout 23s..27s"));
  EXPECT_THAT(waits_of(out, kStage), ElementsAre("rollout 1s..5s"));
  EXPECT_EQ(out.groups[kStage.index()].gpus, 0U);
}

TEST(WorkloadRun, FetchesAreTriedThriceAndThenGivenUp) {
  Bench bench;
  bench.service.emplace(bench.setup, bench.times);
  // near, far, then near again and again.
  bench.service->fetch_ends = {CallStatus::DeadlineExceeded, CallStatus::Ok,
                               CallStatus::VersionLost, CallStatus::DeadlineExceeded};
  const WorkloadOutcome out = bench.go();
  EXPECT_EQ(out.failure, std::nullopt);
  EXPECT_THAT(fetches_of(out, kNear),
              ElementsAre("1.1 not 1s..5s", "1.1 not 6s..10s", "1.1 not 11s..15s"));
  EXPECT_EQ(out.length, seconds(15));
  ASSERT_THAT(out.failures, SizeIs(3));
  EXPECT_EQ(out.failures[0].kind, "fetch");
  EXPECT_EQ(out.failures[1].kind, "version");
  EXPECT_EQ(out.failures[1].who, "near[0]");
  EXPECT_THAT(waits_of(out, kNear), ElementsAre("rollout 1s..15s"));
}

TEST(WorkloadRun, MembersJoinLeaveAndAreTakenAway) {
  Bench bench;
  Generation& loop = bench.generate(false);
  loop.partial = true;
  loop.steps = 2;
  bench.run.seats = {kNear, kFar};
  for (const GroupId seat : bench.run.seats) bench.run.groups[seat.index()].from_start = false;
  bench.run.members = {{seconds(0), MemberEventKind::Join, 0, {}},
                       {seconds(3), MemberEventKind::Join, 1, {}},
                       {seconds(9), MemberEventKind::Notice, 0, seconds(12)},
                       {seconds(12), MemberEventKind::Kill, 0, {}},
                       {seconds(13), MemberEventKind::Kill, 1, {}},
                       {seconds(14), MemberEventKind::Join, 1, {}}};
  const WorkloadOutcome out = bench.go();
  // It was told at 9, had left by 11, and so was not there to be taken away at 12.
  EXPECT_THAT(waits_of(out, kNear), ElementsAre("rollout 1s..5s", "offload 9s..11s"));
  ASSERT_THAT(out.groups[kNear.index()].present, SizeIs(1));
  EXPECT_EQ(out.groups[kNear.index()].present[0].to, seconds(11));
  ASSERT_THAT(out.groups[kFar.index()].present, SizeIs(2));
  EXPECT_EQ(out.groups[kFar.index()].present[0].from, seconds(3));
  EXPECT_EQ(out.groups[kFar.index()].present[0].to, seconds(13));
  EXPECT_EQ(out.groups[kFar.index()].present[1].from, seconds(14));
  ASSERT_GE(fetches_of(out, kFar).size(), 2U);
  EXPECT_EQ(fetches_of(out, kFar)[0], "1.1 3s..7s");
  EXPECT_EQ(fetches_of(out, kFar)[1], "1.1 14s..18s");
  ASSERT_THAT(out.failures, SizeIs(2));
  EXPECT_THAT(out.failures[0].consequence, HasSubstr("left before"));
  EXPECT_EQ(out.failures[1].who, "far[0]");
  EXPECT_THAT(out.failures[1].consequence, HasSubstr("2 rollouts lost"));
  EXPECT_EQ(out.lost, 4U);
}

TEST(WorkloadRun, FaultsStrikeAtAShareOfAnUpdate) {
  Bench bench;
  FaultRule rule;
  rule.kind = FaultKind::Host;
  rule.targets = {bench.topology.find_domain("dc1.r0.h0").value()};
  rule.when = AtTransfer{1, 500'000};
  rule.duration = seconds(1);
  bench.run.rules = {rule};
  bench.run.faults = make_schedule(bench.run.rules, bench.topology, seconds(100), 1);
  const WorkloadOutcome out = bench.go();
  // Blocks come each 0.8 s, from both groups: half of them are there with the fifth of one GPU.
  ASSERT_THAT(out.failures, SizeIs(1));
  EXPECT_EQ(out.failures[0].kind, "host");
  EXPECT_EQ(out.failures[0].who, "dc1.r0.h0");
  EXPECT_EQ(out.failures[0].at, milliseconds(3400));
  EXPECT_EQ(out.failures[0].detected_after, std::nullopt);
  EXPECT_EQ(out.failures[0].consequence,
            "stopped far[0], 1 of them fetching; no other fetch failed");
  EXPECT_THAT(fetches_of(out, kFar), ElementsAre("1.1 not 1s..3400ms", "1.1 4400ms..8400ms"));
  EXPECT_THAT(waits_of(out, kFar), ElementsAre("rollout 1s..3400ms", "rollout 4400ms..8400ms"));
}

TEST(WorkloadRun, AStepWaitsForATrainer) {
  Bench bench;
  bench.generate(true);
  FaultRule rule;
  rule.kind = FaultKind::Host;
  rule.targets = {bench.topology.find_domain("dc0.r0.h0").value()};
  rule.when = AtTime{seconds(5)};
  rule.duration = seconds(20);
  bench.run.rules = {rule};
  bench.run.faults = make_schedule(bench.run.rules, bench.topology, seconds(100), 1);
  const WorkloadOutcome out = bench.go();
  // Trains from 25 until 33, has nothing to unpublish, overwrites until 35.
  EXPECT_THAT(fetches_of(out, kNear), ElementsAre("1.1 1s..5s", "1.2 36s..40s"));
  EXPECT_EQ(out.failure, std::nullopt);
}

TEST(WorkloadRun, KeepsTheLatestVersions) {
  Bench bench;
  Generation& loop = bench.generate(true);
  loop.steps = 3;
  bench.run.retain = Retaining{2, Level::Rack, 2};
  bench.service.emplace(bench.setup, bench.times);
  const WorkloadOutcome out = bench.go();
  std::vector<std::string> kept;
  for (const FakeService::Called& called : bench.service->calls) {
    if (const auto* retain = std::get_if<RetainCall>(&called.call)) {
      kept.push_back("+" + to_string(retain->version));
      EXPECT_EQ(retain->copies, 2U);
      EXPECT_EQ(retain->level, Level::Rack);
    } else if (const auto* release = std::get_if<ReleaseCall>(&called.call)) {
      kept.push_back("-" + to_string(release->version));
    }
  }
  EXPECT_THAT(kept, ElementsAre("+1.1", "+1.2", "+1.3", "-1.1", "+1.4", "-1.2"));
  EXPECT_EQ(out.versions, 4U);
}

TEST(WorkloadRun, EndsAtTheHorizonWithAFailure) {
  Bench bench;
  bench.generate(true);
  bench.run.horizon = seconds(10);
  const WorkloadOutcome out = bench.go();
  EXPECT_EQ(out.length, seconds(10));
  ASSERT_TRUE(out.failure);
  EXPECT_THAT(*out.failure, HasSubstr("not over after 10.0 s"));
}

TEST(WorkloadRun, CallsHaveDeadlines) {
  Bench bench;
  bench.run.publish_deadline = seconds(7);
  bench.run.fetch_deadline = seconds(30);
  bench.service.emplace(bench.setup, bench.times);
  (void)bench.go();
  EXPECT_EQ(bench.service->calls[0].deadline, seconds(7));
  EXPECT_EQ(bench.service->calls[1].deadline, seconds(31));
}

TEST(WorkloadRun, TellsWhatEveryWorkerSaw) {
  Bench bench;
  bench.run.trace = Trace::Block;
  const WorkloadOutcome out = bench.go();
  std::vector<std::string> near;
  std::size_t blocks = 0;
  for (const WorkloadEvent& event : out.events) {
    if (event.worker != WorkerId(2U)) continue;  // near[0], rank 0
    if (event.kind == WorkloadEventKind::BlockDone) {
      ++blocks;
      EXPECT_EQ(event.source, WorkerId(0U));
    }
    const bool told =
        event.kind == WorkloadEventKind::Call || event.kind == WorkloadEventKind::Runs;
    if (told) near.push_back(event.text);
  }
  EXPECT_EQ(blocks, 5U);
  EXPECT_THAT(near, ElementsAre("fetch 1.1: Ok: version 1.1", "1.1"));
  EXPECT_TRUE(std::is_sorted(out.events.begin(), out.events.end(),
                             [](const auto& a, const auto& b) { return a.at < b.at; }));
}

// In a child the same comes back, whatever is in it.
TEST(WorkloadRun, ComesBackWholeFromAChild) {
  Bench bench;
  bench.add_staging();
  Generation& loop = bench.generate(false);
  loop.partial = true;
  loop.lengths = Distribution::lognormal(300, 1.0, 4000);
  bench.run.trace = Trace::Block;
  bench.run.retain = Retaining{};
  bench.run.rules = {FaultRule{
      FaultKind::Coordinator, FaultAction::Crash, {}, AtTime{seconds(2)}, 0, {}, 0, seconds(1)}};
  bench.run.faults = make_schedule(bench.run.rules, bench.topology, seconds(100), 1);
  const std::vector<std::byte> here = encode_outcome(bench.go());
  double last = 0;
  const WorkloadOutcome there = simulate_workload(
      bench.topology, bench.setup, bench.run,
      [&] { return std::make_unique<FakeService>(bench.setup, bench.times); },
      [&](double fraction) { last = fraction; });
  EXPECT_EQ(encode_outcome(there), here);
  EXPECT_DOUBLE_EQ(last, 1);
  bench.run.seed = 2;
  bench.service.reset();
  EXPECT_NE(encode_outcome(bench.go()), here);
}

}  // namespace
}  // namespace holdfast::sim
