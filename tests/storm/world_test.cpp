// Worlds and scripts: what every seed must be like, and what some seed must be like.
#include "core/storm/world.hpp"

#include <gtest/gtest.h>

#include <set>

#include "core/storm/script.hpp"

namespace holdfast::storm {
namespace {

constexpr std::uint64_t kSeeds = 400;

TEST(World, EachIsOneThatTheMachinesAccept) {
  std::size_t most = 0;
  std::size_t memories = 0;
  std::size_t spot = 0;
  std::set<Policy> policies;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const World world = make_world(seed);
    most = std::max(most, world.cards.size());
    memories += world.memories.size();
    policies.insert(world.policy);
    ASSERT_GE(world.cards.size(), 3U);
    ASSERT_LE(world.cards.size(), 64U);
    validate(world.coordinator.session);
    for (const auto& space : world.spaces) {
      EXPECT_LE(space->blocks(), 32U);
    }
    for (std::size_t g = 0; g < world.groups.size(); ++g) {
      const WorldGroup& group = world.groups[g];
      const ModelSpace& space = *world.spaces[group.space.index()];
      ASSERT_EQ(group.members.size(), space.ranks(group.layout));
      for (std::uint32_t rank = 0; rank < group.members.size(); ++rank) {
        const WorkerCard& card = world.cards[group.members[rank].index()];
        EXPECT_EQ(card.group, GroupId(g));
        EXPECT_EQ(card.shard, (ShardId{group.layout, rank}));
        EXPECT_EQ(card.slots, world.cards[group.members[0].index()].slots);
        spot += card.reliable ? 0U : 1U;
      }
    }
    EXPECT_TRUE(world.groups[0].trainer);
  }
  EXPECT_GE(most, 24U);
  EXPECT_GT(memories, kSeeds / 2);
  EXPECT_GT(spot, kSeeds / 4);
  EXPECT_EQ(policies.size(), 6U);
}

TEST(Script, HasEveryKindOfTaskAndFaultInSomeSeed) {
  std::set<TaskKind> tasks;
  std::set<FaultKind> faults;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const World world = make_world(seed);
    const Script script = make_script(world);
    ASSERT_FALSE(script.tasks.empty());
    EXPECT_EQ(script.tasks[0].kind, TaskKind::Publish);
    Time last;
    for (const Task& task : script.tasks) {
      EXPECT_GE(task.at, last);
      EXPECT_LE(task.at, script.calm);
      last = task.at;
      tasks.insert(task.kind);
    }
    for (const Fault& fault : script.faults) faults.insert(fault.kind);
  }
  EXPECT_EQ(tasks.size(), kTaskKinds);
  EXPECT_EQ(faults.size(), kFaultKinds);
}

TEST(Content, DiffersWithEverythingThatNamesIt) {
  const Content content{SpaceId(0U), {0, 1}, 0};
  std::vector<std::byte> bytes(32);
  write_block(content, BlockId(3U), bytes);
  EXPECT_TRUE(is_block(content, BlockId(3U), bytes));
  EXPECT_FALSE(is_block(content, BlockId(4U), bytes));
  EXPECT_FALSE(is_block({SpaceId(1U), {0, 1}, 0}, BlockId(3U), bytes));
  EXPECT_FALSE(is_block({SpaceId(0U), {0, 2}, 0}, BlockId(3U), bytes));
  EXPECT_FALSE(is_block({SpaceId(0U), {1, 1}, 0}, BlockId(3U), bytes));
  EXPECT_FALSE(is_block({SpaceId(0U), {0, 1}, 1}, BlockId(3U), bytes));
  bytes[31] ^= std::byte{1};
  EXPECT_FALSE(is_block(content, BlockId(3U), bytes));
}

}  // namespace
}  // namespace holdfast::storm
