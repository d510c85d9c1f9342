// Who runs where: groups, numbers of workers, cards and memories of a scenario.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <fmt/format.h>

#include "core/io/deployment.hpp"
#include "tests/io/scenario_samples.hpp"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kGroups =
    "  trainer: {place: {hosts: h0}, layout: tp2, role: trainer}\n"
    "  rollout: {place: {hosts: h1}, layout: tp4}\n"
    "  idle: {place: {hosts: h2}, layout: tp1}\n"
    "  far: {place: {hosts: h3}, layout: tp2, reliability: spot}\n"
    "  stage: {place: {host_memory: h2.mem}, layout: tp1}\n";

std::string workload(const std::string& rest = "") {
  return samples::scenario_text(
      kGroups,
      "workload: {kind: cross_dc, trainers: trainer, rollouts: [rollout, far], staging: stage,\n"
      "  loop: asynchronous, steps: 3, step_time: 10s, batch: 64, lengths: {constant: 100},\n"
      "  token_time: 20ms}\n" +
          rest);
}

Deployment deploy(const std::string& text) {
  return make_deployment(parse_scenario(text, "s.yaml"), samples::machine(4, 4), samples::model());
}

std::vector<std::string> names_of(const Deployment& d) {
  std::vector<std::string> names;
  for (const DeployedGroup& group : d.groups) names.push_back(group.name);
  return names;
}

TEST(Deployment, NumbersReplicasInTheOrderOfTheScenario) {
  const Deployment d = deploy(workload());
  EXPECT_THAT(names_of(d), ElementsAre("trainer[0]", "trainer[1]", "rollout[0]", "far[0]", "far[1]",
                                       "stage[0]"));
  EXPECT_THAT(d.first_worker, ElementsAre(0U, 2U, 4U, 8U, 10U, 12U));
  EXPECT_EQ(d.roster.size(), 13U);
  EXPECT_TRUE(d.memories.empty());
  EXPECT_TRUE(d.groups[0].publishes);
  EXPECT_FALSE(d.groups[0].fetches);
  EXPECT_EQ(d.groups[0].role, Role::Trainer);
  EXPECT_TRUE(d.groups[2].fetches);
  EXPECT_EQ(d.groups[2].role, Role::Rollout);
  EXPECT_FALSE(d.groups[3].reliable);
  EXPECT_TRUE(d.groups[5].host_memory);
}

TEST(Deployment, CardsSayWhatEachWorkerHolds) {
  const Topology topology = samples::machine(4, 4);
  const Deployment d = deploy(workload("retain: {copies: 1, level: host, versions: 1}\n"));
  ASSERT_EQ(d.cards.size(), d.roster.size());
  for (std::size_t g = 0; g < d.groups.size(); ++g) {
    const DeployedGroup& group = d.groups[g];
    ASSERT_EQ(group.members.size(), d.space->ranks(group.layout));
    for (std::uint32_t rank = 0; rank < group.members.size(); ++rank) {
      const WorkerId worker = d.worker(GroupId(g), rank);
      const WorkerCard& card = d.cards[worker.index()];
      EXPECT_EQ(card.node, group.members[rank]);
      EXPECT_EQ(d.roster[worker.index()], group.members[rank]);
      EXPECT_EQ(card.group, GroupId(g));
      EXPECT_EQ(card.shard, (ShardId{group.layout, rank}));
      EXPECT_EQ(card.reliable, group.reliable);
      EXPECT_FALSE(card.host_memory);
    }
  }
  std::set<NodeId> different(d.roster.begin(), d.roster.end());
  EXPECT_EQ(different.size(), d.roster.size());
  // Not that of h2, which stages, nor that of h3, which is a spot machine.
  ASSERT_EQ(d.memories.size(), 2U);
  EXPECT_EQ(topology.node(d.memories[0].node).name, "h0.mem");
  EXPECT_EQ(topology.node(d.memories[1].node).name, "h1.mem");
  const WorkerCard& last = d.cards.back();
  EXPECT_TRUE(last.host_memory);
  EXPECT_FALSE(last.group.valid());
  EXPECT_EQ(last.shard, kWholeModel);
  EXPECT_EQ(last.node, d.memories[1].node);
  EXPECT_EQ(last.budget, Bytes(1U << 30U));
}

TEST(Deployment, BudgetsAreAtMostTheMemory) {
  const char* retain = "retain: {copies: 1, level: host, versions: 1}\n";
  const auto budget = [&](const char* written) {
    return deploy(workload(fmt::format("{}options: {{host_memory_budget: {}}}\n", retain, written)))
        .memories.front()
        .budget;
  };
  EXPECT_EQ(budget("5MB"), Bytes(5'000'000));
  EXPECT_EQ(budget("5TB"), Bytes(1U << 30U));
}

TEST(Deployment, StagingHoldsTheWholeModelTwiceWhereItFits) {
  const Deployment d = deploy(workload());
  const DeployedGroup& stage = d.groups.back();
  EXPECT_EQ(d.space->bytes({stage.layout, 0}), samples::model().total());
  EXPECT_EQ(stage.layout, d.map.layouts().size() - 1);
  EXPECT_EQ(stage.slots, 2U);
  EXPECT_EQ(stage.destination, Destination::Shadow);
  EXPECT_EQ(d.groups[2].slots, 1U);
  EXPECT_EQ(d.groups[2].destination, Destination::InPlace);
  const Deployment shadow = deploy(workload("options: {destination: shadow}\n"));
  EXPECT_EQ(shadow.groups[2].slots, 2U);
  EXPECT_EQ(shadow.groups[0].slots, 1U);  // a trainer overwrites its only buffer
}

TEST(Deployment, MapAndSpaceHaveTheSameBlocksAndLayouts) {
  const Deployment d = deploy(workload());
  ASSERT_EQ(d.map.blocks(), d.space->blocks());
  ASSERT_EQ(d.map.layouts().size(), d.space->layouts());
  EXPECT_EQ(d.space->layouts(), 3U);  // tp2, tp4 and that of host memory; nobody uses tp1
  for (LayoutNumber l = 0; l < d.space->layouts(); ++l) {
    for (std::uint32_t s = 0; s < d.space->ranks(l); ++s) {
      EXPECT_EQ(d.map.shard_bytes(l, s), d.space->bytes({l, s}));
    }
  }
}

TEST(Deployment, TakesOptionsOver) {
  const Deployment d = deploy(
      workload("verify: false\noptions: {gather: 7ms, heartbeat: 100ms, serve_from_spot: false,\n"
               "  detection: {worker: 3s, link: 1s, coordinator: 4s}}\n"));
  EXPECT_EQ(d.coordinator.detection, seconds(3));
  EXPECT_EQ(d.coordinator.rebuild_time, seconds(4));
  EXPECT_EQ(d.coordinator.gather, milliseconds(7));
  EXPECT_FALSE(d.coordinator.serve_from_spot);
  EXPECT_FALSE(d.coordinator.verify);
  EXPECT_EQ(d.agent.heartbeat, milliseconds(100));
}

TEST(Deployment, OfAnUpdateHasItsHoldersAndReceivers) {
  const Deployment d = deploy(
      samples::scenario_text(kGroups,
                             "holders: [{group: far, replicas: [1]}]\n"
                             "update: {receivers: [rollout, far], destination: in_place}\n"));
  EXPECT_THAT(names_of(d), ElementsAre("rollout[0]", "far[0]", "far[1]"));
  EXPECT_TRUE(d.groups[1].fetches);
  EXPECT_FALSE(d.groups[2].fetches);
  EXPECT_TRUE(d.groups[2].publishes);
}

std::string refusal(const std::string& text, Bytes gpu_memory = Bytes(1 << 24)) {
  try {
    (void)make_deployment(parse_scenario(text, "s.yaml"), samples::machine(4, 4, gpu_memory),
                          samples::model());
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Deployment, RefusesWhatCannotRun) {
  EXPECT_THAT(
      refusal(samples::scenario_text(kGroups,
                                     "holders: [{group: far, part: {first: 50%}}, trainer]\n"
                                     "update: {receivers: [rollout], destination: in_place}\n")),
      HasSubstr("s.yaml:15:12: who holds a part"));
  EXPECT_THAT(
      refusal(samples::scenario_text(kGroups,
                                     "holders: [{group: far, replicas: [7]}]\n"
                                     "update: {receivers: [rollout], destination: in_place}\n")),
      HasSubstr("has no replica 7"));
  EXPECT_THAT(refusal(workload(), Bytes(3'000'000)),
              HasSubstr("group 'trainer': 'h0.gpu0' has 3.00 MB of memory, less than one version"));
  EXPECT_THAT(refusal(workload("options: {destination: shadow}\n"), Bytes(5'000'000)),
              HasSubstr("group 'far': 'h3.gpu0' has 5.00 MB of memory, less than two versions"));
  const std::string shared = samples::scenario_text(
      "  trainer: {place: {hosts: h0}, layout: tp2, role: trainer}\n"
      "  rollout: {place: {gpus: 'h0.gpu*'}, layout: tp4}\n",
      "holders: [trainer]\nupdate: {receivers: [rollout], destination: in_place}\n");
  EXPECT_THAT(refusal(shared), HasSubstr("'h0.gpu0' is in group 'trainer' and in group 'rollout'"));
}

}  // namespace
}  // namespace holdfast
