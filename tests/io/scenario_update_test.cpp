#include "core/io/scenario_update.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/io/scenario_samples.hpp"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kHolders = "holders: [trainer]\nupdate: {receivers: [rollout]}\n";
const std::string kBlocks = "options: {block_size: 64KiB}\n";

UpdateTask update_of(const std::string& groups, const std::string& rest, const Topology& topology) {
  return make_update(parse_scenario(samples::scenario_text(groups, rest), "s.yaml"), topology,
                     samples::model());
}

UpdateTask update_of(const std::string& groups, const std::string& rest) {
  return update_of(groups, rest, samples::machine(4, 4));
}

const DemandWorker& worker_at(const UpdateTask& task, const Topology& topology, const char* name) {
  for (const DemandWorker& worker : task.demand.workers) {
    if (topology.node(worker.node).name == name) {
      return worker;
    }
  }
  throw std::out_of_range(name);
}

TEST(ScenarioUpdate, CutsGroupsIntoReplicas) {
  const Topology topology = samples::machine(4, 4);
  const UpdateTask task = update_of(
      "  trainer: {place: {hosts: h0}, layout: tp4}\n"
      "  rollout: {place: {hosts: 'h[1-3]'}, layout: tp2}\n",
      kHolders + kBlocks, topology);
  ASSERT_EQ(task.replicas.size(), 7U);
  EXPECT_EQ(task.replicas[0].name, "trainer[0]");
  EXPECT_EQ(task.replicas[0].role, Role::Trainer);
  EXPECT_FALSE(task.replicas[0].receives);
  EXPECT_EQ(task.replicas[6].name, "rollout[5]");
  EXPECT_EQ(task.replicas[6].role, Role::Rollout);
  EXPECT_TRUE(task.replicas[6].receives);
  EXPECT_EQ(worker_at(task, topology, "h1.gpu1").group, 1U);
  EXPECT_EQ(worker_at(task, topology, "h1.gpu2").group, 2U);
  EXPECT_EQ(task.demand.workers.size(), 16U);
  EXPECT_EQ(task.model_bytes, samples::model().total());
  EXPECT_NO_THROW(validate(task.demand, topology));
  EXPECT_THAT(task.warnings, IsEmpty());
  // Every rollout worker receives half of what is cut and all that is not.
  const std::uint64_t cut = 8 * 1'024 * 1'024 + 8 * 1'024;
  const auto missing = missing_bytes(task.demand);
  EXPECT_EQ(missing[0], Bytes(0));
  EXPECT_EQ(missing[4], Bytes(cut / 2 + 4'096));
}

TEST(ScenarioUpdate, TakesAsManyReplicasAsAskedFor) {
  const Topology topology = samples::machine(4, 4);
  const UpdateTask task = update_of(
      "  trainer: {place: {hosts: h0}, layout: tp4}\n"
      "  rollout: {place: {hosts: 'h[1-3]'}, layout: tp1, replicas: 5}\n",
      kHolders + kBlocks, topology);
  EXPECT_EQ(task.replicas.size(), 6U);
  EXPECT_EQ(worker_at(task, topology, "h2.gpu0").group, 5U);
}

TEST(ScenarioUpdate, HostMemoryHoldsAWholeReplica) {
  const Topology topology = samples::machine(2, 4);
  const UpdateTask task = update_of(
      "  trainer: {place: {host_memory: h0}, layout: tp4}\n"
      "  rollout: {place: {hosts: [h0, h1]}, layout: tp4}\n",
      kHolders + kBlocks, topology);
  EXPECT_EQ(task.replicas.size(), 3U);
  EXPECT_EQ(topology.node(worker_at(task, topology, "h0.mem").node).kind, NodeKind::HostMemory);
  for (const BlockClass& block_class : task.demand.classes) {
    ASSERT_EQ(block_class.holders.size(), 1U);
    const auto& holder = task.demand.workers[block_class.holders[0].index()];
    EXPECT_EQ(topology.node(holder.node).name, "h0.mem");
  }
}

TEST(ScenarioUpdate, DomainsOfAnyLevelStandForTheirGpus) {
  const Topology topology = samples::machine(4, 4);
  const UpdateTask task = update_of(
      "  trainer: {place: {gpus: [h0.gpu1]}, layout: tp1}\n"
      "  rollout: {place: {hosts: [dc1]}, layout: tp4}\n",
      kHolders + kBlocks, topology);
  EXPECT_EQ(task.demand.workers.size(), 9U);
  EXPECT_EQ(worker_at(task, topology, "h3.gpu3").group, 2U);
}

TEST(ScenarioUpdate, WhoHoldsAPartReceivesTheRest) {
  const Topology topology = samples::machine(2, 4);
  const UpdateTask task = update_of(
      "  trainer: {place: {hosts: h0}, layout: tp4}\n"
      "  rollout: {place: {hosts: h1}, layout: tp2}\n",
      "holders: [trainer, {group: rollout, replicas: [1], part: {first: 50%}}]\n"
      "update: {receivers: [rollout]}\noptions: {block_size: 4KiB}\n",
      topology);
  const auto missing = missing_bytes(task.demand);
  const std::uint64_t shard = (8 * 1'024 * 1'024 + 8 * 1'024) / 2 + 4'096;
  EXPECT_EQ(missing[4], Bytes(shard));
  // Each shard is 1,027 blocks, so that the first 513 are held. By signature they are, for shard 0,
  // one segment of 512 full blocks and a half; for shard 1, what is not cut and 512 full blocks.
  const std::uint64_t first_half = 512 * 4'096 + 2'048;
  const std::uint64_t second_half = 4'096 + 512 * 4'096;
  EXPECT_EQ(missing[6], Bytes(shard - first_half));
  EXPECT_EQ(missing[7], Bytes(shard - second_half));
  const auto& half = worker_at(task, topology, "h1.gpu2");
  EXPECT_EQ(half.memory_free, Bytes((1U << 24U) - first_half));
  EXPECT_EQ(half.group, 2U);
}

TEST(ScenarioUpdate, OneEndpointOfTwoGroupsIsOneWorker) {
  const Topology topology = samples::machine(1, 4);
  const UpdateTask task = update_of(
      "  trainer: {place: {hosts: h0}, layout: tp4}\n"
      "  rollout: {place: {gpus: [h0.gpu2]}, layout: tp1}\n",
      kHolders + "options: {block_size: 4KiB}\n", topology);
  EXPECT_EQ(task.demand.workers.size(), 4U);
  const std::uint64_t whole = 8 * 1'024 * 1'024 + 8 * 1'024 + 4'096;
  const std::uint64_t shard = (8 * 1'024 * 1'024 + 8 * 1'024) / 4 + 4'096;
  EXPECT_EQ(missing_bytes(task.demand)[2], Bytes(whole - shard));
  EXPECT_EQ(task.demand.workers[2].group, 1U);
  EXPECT_EQ(task.demand.workers[2].memory_free, Bytes((1U << 24U) - shard));
}

TEST(ScenarioUpdate, ShadowNeedsRoomForTwo) {
  const std::string groups =
      "  trainer: {place: {hosts: h0}, layout: tp4}\n"
      "  rollout: {place: {hosts: h1}, layout: tp1}\n";
  const std::string shadow =
      "holders: [trainer]\nupdate: {receivers: [rollout], destination: shadow}\n" + kBlocks;
  const std::uint64_t whole = samples::model().total().count();
  const Topology enough = samples::machine(2, 4, Bytes(2 * whole));
  EXPECT_EQ(worker_at(update_of(groups, shadow, enough), enough, "h1.gpu0").memory_free,
            Bytes(whole));
  const Topology one_less = samples::machine(2, 4, Bytes(2 * whole - 1));
  EXPECT_THROW((void)update_of(groups, shadow, one_less), Error);
  const Topology in_place = samples::machine(2, 4, Bytes(whole));
  EXPECT_EQ(
      worker_at(update_of(groups, kHolders + kBlocks, in_place), in_place, "h1.gpu0").memory_free,
      Bytes(whole));
}

TEST(ScenarioUpdate, SpotMayBeKeptFromServing) {
  const Topology topology = samples::machine(3, 4);
  const std::string groups =
      "  trainer: {place: {hosts: h0}, layout: tp4}\n"
      "  rollout: {place: {hosts: 'h[1-2]'}, layout: tp4, reliability: spot}\n";
  const UpdateTask kept = update_of(
      groups, kHolders + "options: {block_size: 64KiB, serve_from_spot: false}\n", topology);
  EXPECT_FALSE(worker_at(kept, topology, "h1.gpu0").may_serve);
  EXPECT_TRUE(worker_at(kept, topology, "h0.gpu0").may_serve);
  const UpdateTask free = update_of(groups, kHolders + kBlocks, topology);
  EXPECT_TRUE(worker_at(free, topology, "h1.gpu0").may_serve);
}

TEST(ScenarioUpdate, ReplicasMayOwnWholeHosts) {
  const UpdateTask task = update_of(
      "  trainer: {place: {gpus: [h0.gpu0]}, layout: tp1}\n"
      "  rollout: {place: {gpus: ['h[1-2].gpu[0-1]']}, layout: tp4}\n",
      kHolders + kBlocks);
  EXPECT_EQ(task.replicas.size(), 2U);
}

TEST(ScenarioUpdate, BlockSizes) {
  ScenarioOptions options;
  options.blocks_per_eighth = 1'024;
  // 141,107,412,992 / 8,192 = 17,225,025.99, up to a multiple of 16.
  EXPECT_EQ(block_size_of(options, Bytes(141'107'412'992)), Bytes(17'225'040));
  EXPECT_EQ(block_size_of(options, Bytes(8 * 1'024 * 8'192)), Bytes(8'192));
  // Models too small for that many blocks get fewer, of the least size.
  EXPECT_EQ(block_size_of(options, Bytes(8 * 1'024 * 64)), Bytes(4'096));
  options.block_size = Bytes(5);
  EXPECT_EQ(block_size_of(options, Bytes(1 << 20)), Bytes(5));
}

TEST(ScenarioUpdate, WarnsOfBlocksLargerThanTheModel) {
  const std::string groups =
      "  trainer: {place: {hosts: h0}, layout: tp4}\n"
      "  rollout: {place: {hosts: h1}, layout: tp4}\n";
  const UpdateTask task = update_of(groups, kHolders + "options: {block_size: 1GB}\n");
  EXPECT_THAT(task.warnings, ElementsAre(HasSubstr("s.yaml:14:23: blocks of 1GB are larger")));
}

TEST(ScenarioUpdate, WarnsOfTrainersThatReceive) {
  const UpdateTask task = update_of(
      "  trainer: {place: {hosts: h0}, layout: tp4}\n"
      "  rollout: {place: {hosts: h1}, layout: tp4, role: trainer}\n",
      kHolders + kBlocks);
  EXPECT_THAT(task.warnings, ElementsAre(HasSubstr("its waiting is in no stall")));
}

TEST(ScenarioUpdate, WarnsOfNumbersThatNothingHas) {
  const UpdateTask task = update_of(
      "  trainer: {place: {hosts: h0}, layout: tp4}\n"
      "  rollout: {place: {hosts: [h1, 'h[2-9]']}, layout: tp4}\n"
      "  idle: {place: {gpus: 'h[3-4].gpu[0-3]'}, layout: tp4}\n",
      kHolders + kBlocks);
  EXPECT_THAT(task.warnings,
              ElementsAre("s.yaml:11:33: group 'rollout': 'h[2-9]' names more than there is: no "
                          "domain has 4-9 of '[2-9]'",
                          "s.yaml:12:24: group 'idle': 'h[3-4].gpu[0-3]' names more than there is: "
                          "no GPU has 4 of '[3-4]'"));
}

struct Wrong {
  const char* what;
  const char* trainer;
  const char* rollout;
  const char* rest;
  ErrorCode code;
  int line;
  int column;
  const char* message;
};

constexpr const char* kRest = "holders: [trainer]\nupdate: {receivers: [rollout]}\n";
constexpr const char* kTrainer = "{place: {hosts: h0}, layout: tp4}";
constexpr const char* kRollout = "{place: {hosts: h1}, layout: tp4}";

// Line 10 is the trainer's, 11 the rollout's, 12 the holders', 13 the update's.
const Wrong kWrong[] = {
    {"unknown host", kTrainer, "{place: {hosts: h11}, layout: tp4}", kRest, ErrorCode::UnknownName,
     11, 28, "no domain is called 'h11'; did you mean 'h1'"},
    {"unknown GPU", kTrainer, "{place: {gpus: h1.gp0}, layout: tp4}", kRest, ErrorCode::UnknownName,
     11, 27, "did you mean 'h1.gpu0'"},
    {"nothing matches", kTrainer, "{place: {hosts: 'x*'}, layout: tp4}", kRest,
     ErrorCode::UnknownName, 11, 28, "'x*' matches no domain"},
    {"a GPU as a host", kTrainer, "{place: {hosts: h1.gpu0}, layout: tp1}", kRest,
     ErrorCode::UnknownName, 11, 28, "under 'gpus'"},
    {"a host as a GPU", kTrainer, "{place: {gpus: h1}, layout: tp1}", kRest, ErrorCode::UnknownName,
     11, 27, "under 'hosts'"},
    {"a NIC as a GPU", kTrainer, "{place: {gpus: h1.nic}, layout: tp1}", kRest, ErrorCode::BadValue,
     11, 27, "no GPU"},
    {"uneven", kTrainer, "{place: {gpus: ['h1.gpu[0-2]']}, layout: tp2}", kRest,
     ErrorCode::BadValue, 11, 28, "do not divide into replicas of 2"},
    {"too few", kTrainer, "{place: {gpus: [h1.gpu0]}, layout: tp2}", kRest, ErrorCode::BadValue, 11,
     28, "a replica of 2 workers takes 2, and it is placed on 1"},
    {"too many replicas", kTrainer, "{place: {hosts: h1}, layout: tp2, replicas: 3}", kRest,
     ErrorCode::BadValue, 11, 56, "3 replicas of 2 workers take 6, and it is placed on 4"},
    {"straddles", kTrainer, "{place: {gpus: [h1.gpu0, h2.gpu0, h2.gpu1, h3.gpu0]}, layout: tp2}",
     kRest, ErrorCode::BadValue, 11, 28, "would get 1 of the 2 that host 'h2' gives"},
    {"no such replica", kTrainer, kRollout,
     "holders: [{group: trainer, replicas: [1]}]\nupdate: {receivers: [rollout]}\n",
     ErrorCode::UnknownName, 12, 38, "no replica 1: it has 1"},
    {"part of nothing", kTrainer, kRollout,
     "holders: [trainer, {group: rollout, part: {first: 1%}}]\nupdate: {receivers: [rollout]}\n"
     "options: {block_size: 1MiB}\n",
     ErrorCode::NoEffect, 12, 21, "less than one block"},
    {"not all is held", kTrainer, kRollout,
     "holders: [{group: trainer, part: {last: 50%}}]\nupdate: {receivers: [rollout]}\n",
     ErrorCode::BadValue, 12, 10, "which 'h1.gpu0' wants; add a holder of them"},
    {"nothing is missing", kTrainer, kRollout,
     "holders: [trainer, rollout]\nupdate: {receivers: [rollout]}\n", ErrorCode::BadValue, 13, 10,
     "nothing to move"},
    {"receives twice", "{place: {hosts: h0}, layout: tp4}", "{place: {hosts: h0}, layout: tp1}",
     "holders: [{group: trainer, part: {first: 50%}}]\nupdate: {receivers: [trainer, rollout]}\n",
     ErrorCode::BadValue, 13, 31, "an endpoint runs one replica"},
};

TEST(ScenarioUpdate, RefusesWithPlaceAndAdvice) {
  for (const Wrong& wrong : kWrong) {
    SCOPED_TRACE(wrong.what);
    const std::string groups =
        std::string("  trainer: ") + wrong.trainer + "\n  rollout: " + wrong.rollout + "\n";
    std::string rest = wrong.rest;
    if (rest.find("options") == std::string::npos) {
      rest += kBlocks;
    }
    try {
      (void)update_of(groups, rest);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), std::string(to_string(wrong.code)));
      EXPECT_EQ(error.place().line, wrong.line) << error.what();
      EXPECT_EQ(error.place().column, wrong.column) << error.what();
      EXPECT_THAT(error.message(), HasSubstr(wrong.message));
    }
  }
}

}  // namespace
}  // namespace holdfast
