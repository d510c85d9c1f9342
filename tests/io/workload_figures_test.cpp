// Bounds and least bytes of a run's fetches, by who held what when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/io/run_figures.hpp"
#include "core/io/workload_figures.hpp"
#include "core/plan/bound.hpp"
#include "tests/io/scenario_samples.hpp"

namespace holdfast {
namespace {

constexpr std::uint32_t kTrainer = 0;
constexpr std::uint32_t kNear = 2;  // after two trainers of two GPUs each
constexpr std::uint32_t kFar = 3;   // two replicas of two GPUs in one host of dc1

class WorkloadFigures : public ::testing::Test {
 protected:
  WorkloadFigures()
      : topology_(samples::machine(4, 4)),
        scenario_(parse_scenario(
            samples::scenario_text(
                "  trainer: {place: {hosts: h0}, layout: tp2, role: trainer}\n"
                "  near: {place: {hosts: h1}, layout: tp4}\n"
                "  far: {place: {hosts: h3}, layout: tp2}\n",
                "workload: {kind: cross_dc, trainers: trainer, rollouts: [near, far],\n"
                "  loop: asynchronous, steps: 3, step_time: 10s, batch: 64,\n"
                "  lengths: {constant: 100}, token_time: 20ms}\n"
                "retain: {copies: 1, level: host}\n"),
            "s.yaml")),
        deployment_(make_deployment(scenario_, topology_, samples::model())),
        memory_from_(deployment_.memories.size(), Time::never()) {
    hold(kTrainer, {1, 1}, seconds(0));
  }

  void hold(std::uint32_t group, Version version, Time from, Time to = Time::never()) {
    held_.push_back({group, version, from, to});
  }
  void fetch(std::uint32_t group, Version version, Time at) {
    FetchRecord fetch;
    fetch.version = version;
    fetch.group = group;
    fetch.gpus = deployment_.groups[group].members.size();
    fetch.requested = at;
    fetch.ended = at + seconds(1);
    fetch.completed = true;
    record_.fetches.push_back(fetch);
    hold(group, version, at);
  }
  PayloadBytes figures() {
    return add_bounds(deployment_, topology_, true, held_, memory_from_, record_);
  }
  [[nodiscard]] std::uint64_t model() const { return samples::model().total().count(); }

  Topology topology_;
  Scenario scenario_;
  Deployment deployment_;
  std::vector<HeldVersion> held_;
  std::vector<Time> memory_from_;
  WorkloadRecord record_;
};

// The demand that a batch comes to, made another way.
TEST_F(WorkloadFigures, OfOneBatchAreThoseOfItsDemand) {
  hold(1, {1, 1}, seconds(0));
  for (const std::uint32_t group : {kNear, kFar, kFar + 1}) fetch(group, {1, 1}, seconds(5));
  const PayloadBytes least = figures();
  const Demand demand = task_of(deployment_, scenario_, topology_, samples::model()).demand;
  const Bound bound = lower_bound(topology_, demand);
  ASSERT_EQ(record_.joint.size(), 1U);
  EXPECT_EQ(record_.joint[0].bound, bound.time());
  EXPECT_EQ(record_.joint[0].first_request, seconds(5));
  EXPECT_EQ(record_.fetches[0].bound, bound.by_group[kNear]);
  EXPECT_EQ(record_.fetches[2].bound, bound.by_group[kFar + 1]);
  EXPECT_EQ(least, minimum_bytes(topology_, demand));
  EXPECT_EQ(least.wan.count(), model());
  EXPECT_EQ(least.nic.count(), 2 * model());
  EXPECT_GE(record_.fetches[0].bound, transfer_time(Bytes(model() / 4), Rate(1'000'000'000)));
}

TEST_F(WorkloadFigures, WhatCameBeforeIsNotMissedAgain) {
  fetch(kFar, {1, 1}, seconds(5));
  fetch(kFar + 1, {1, 1}, seconds(9));  // from its neighbour
  const PayloadBytes least = figures();
  EXPECT_EQ(least.wan.count(), model());
  EXPECT_EQ(least.nic.count(), model());
  EXPECT_EQ(record_.joint.size(), 2U);
}

TEST_F(WorkloadFigures, WhatIsLetGoIsMissedAgain) {
  fetch(kFar, {1, 1}, seconds(5));
  held_.back().to = seconds(8);
  fetch(kFar + 1, {1, 1}, seconds(9));
  EXPECT_EQ(figures().wan.count(), 2 * model());
}

TEST_F(WorkloadFigures, HostMemoryThatKeepsCopiesMayServe) {
  fetch(kFar, {1, 1}, seconds(5));
  for (std::size_t m = 0; m < deployment_.memories.size(); ++m) {
    if (topology_.node(deployment_.memories[m].node).name == "h3.mem") memory_from_[m] = seconds(4);
  }
  EXPECT_EQ(figures().wan.count(), 0U);
}

TEST_F(WorkloadFigures, WhoAsksAgainWithAPartHasNoBound) {
  fetch(kFar, {1, 1}, seconds(5));
  record_.fetches.back().completed = false;
  fetch(kFar, {1, 1}, seconds(7));
  held_.pop_back();  // it has held a part since 5 s
  const PayloadBytes least = figures();
  EXPECT_GT(record_.fetches[0].bound, Time());
  EXPECT_EQ(record_.fetches[1].bound, Time());
  EXPECT_EQ(least.wan.count(), model());
}

TEST_F(WorkloadFigures, AVersionThatComesLaterIsJudgedByItsPublisher) {
  hold(kTrainer, {1, 2}, seconds(6));
  held_.front().to = seconds(5);
  fetch(kFar, {1, 2}, seconds(3));  // asked for the latest, and was given the next one
  figures();
  EXPECT_GT(record_.fetches[0].bound, Time());
}

TEST_F(WorkloadFigures, OfAVersionThatNobodyHoldsThereAreNone) {
  fetch(kFar, {1, 9}, seconds(3));
  held_.pop_back();
  figures();
  EXPECT_EQ(record_.fetches[0].bound, Time());
}

}  // namespace
}  // namespace holdfast
