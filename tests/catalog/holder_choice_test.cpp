#include "core/catalog/holder_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/catalog/retention_world.hpp"

namespace holdfast {

// For messages of failed tests.
void PrintTo(const Offload& offload, std::ostream* out) {
  *out << "{" << offload.shard << " to " << offload.to.value() << "}";
}

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using testing_support::RetentionWorld;

WorkerId gpu(std::uint32_t host) {
  return RetentionWorld::gpu(host);
}
WorkerId memory(std::uint32_t host) {
  return RetentionWorld::memory(host);
}

TEST(FaultDomains, NestsAndTellsApart) {
  const RetentionWorld world(2, 2, 2);
  const auto same = [&](std::uint32_t a, std::uint32_t b, Level level) {
    return world.domains.of(world.workers[2 * a].node, level) ==
           world.domains.of(world.workers[2 * b + 1].node, level);
  };
  EXPECT_TRUE(same(0, 0, Level::Host));
  EXPECT_FALSE(same(0, 1, Level::Host));
  EXPECT_TRUE(same(0, 1, Level::Rack));
  EXPECT_FALSE(same(1, 2, Level::Rack));
  EXPECT_TRUE(same(0, 3, Level::Datacenter));
  EXPECT_FALSE(same(0, 4, Level::Datacenter));
  // There are no pods: two racks of a datacenter are not said to be in different ones.
  EXPECT_TRUE(same(0, 3, Level::Pod));
  EXPECT_FALSE(same(0, 4, Level::Pod));
}

TEST(FaultDomains, DoesNotInventLargerDomains) {
  Sketch sketch;
  const NodeId a = sketch.node("a", NodeKind::Switch, sketch.builder.add_domain("ra", Level::Rack));
  const NodeId b = sketch.node("b", NodeKind::Switch, sketch.builder.add_domain("rb", Level::Rack));
  sketch.link(a, b, LinkKind::Fabric);
  const FaultDomains domains(sketch.build());
  EXPECT_NE(domains.of(a, Level::Host), domains.of(b, Level::Host));
  EXPECT_NE(domains.of(a, Level::Rack), domains.of(b, Level::Rack));
  EXPECT_EQ(domains.of(a, Level::Pod), domains.of(b, Level::Pod));
  EXPECT_EQ(domains.of(a, Level::Datacenter), domains.of(b, Level::Datacenter));
}

TEST(FaultDomains, WhatIsOutsideAllDomainsFailsTogether) {
  Sketch sketch;
  const NodeId a = sketch.node("a", NodeKind::Switch);
  const NodeId b = sketch.node("b", NodeKind::Switch);
  sketch.link(a, b, LinkKind::Fabric);
  const FaultDomains domains(sketch.build());
  for (const Level level : {Level::Host, Level::Datacenter}) {
    EXPECT_EQ(domains.of(a, level), domains.of(b, level));
    EXPECT_LT(domains.of(a, level), domains.count());
  }
}

TEST(Safety, CountsEachFaultDomainOnce) {
  RetentionWorld world(1, 2, 2);
  world.shards = {{Bytes(10)}, {Bytes(10)}};
  world.holds(0, gpu(0));
  world.holds(0, memory(0));
  world.holds(0, gpu(1));
  world.holds(0, gpu(2));
  EXPECT_EQ(world.safe(), (Safety{0, 0, 1}));  // nobody holds shard 1
  world.holds(1, gpu(0));
  world.holds(1, gpu(3));
  EXPECT_EQ(world.safe(), (Safety{2, 0, 1}));
  world.holds(1, gpu(1));
  EXPECT_EQ(world.safe(), (Safety{3, 0, 0}));
  world.level = Level::Rack;
  EXPECT_EQ(world.safe(), (Safety{2, 0, 0}));
  world.level = Level::Datacenter;
  EXPECT_EQ(world.safe(), (Safety{1, 0, 0}));
}

TEST(Safety, CountsOnlyWhatLasts) {
  RetentionWorld world(1, 1, 2);
  world.shards = {{Bytes(10)}};
  world.holds(0, gpu(0));
  world.holds(0, gpu(1));
  ASSERT_EQ(world.safe().domains, 2U);
  const RetentionWorker usual = world.at(gpu(1));
  world.at(gpu(1)).reliable = false;
  EXPECT_EQ(world.safe().domains, 1U);
  world.at(gpu(1)) = usual;
  world.at(gpu(1)).live = false;
  EXPECT_EQ(world.safe().domains, 1U);
  world.at(gpu(1)) = usual;
  world.at(gpu(1)).leaving = true;
  EXPECT_EQ(world.safe().domains, 1U);
  world.at(gpu(1)) = usual;
  for (const CopyState state : {CopyState::Partial, CopyState::Broken, CopyState::Offloading}) {
    world.holdings[1].state = state;
    EXPECT_EQ(world.safe().domains, 1U);
  }
  world.holdings[1] = {0, WorkerId(77U), CopyState::Complete};  // gone
  EXPECT_EQ(world.safe().domains, 1U);
}

TEST(Safety, FindsWorkersWhoseIdsHaveGaps) {
  RetentionWorld world(1, 1, 3);
  world.shards = {{Bytes(10)}};
  world.holds(0, gpu(1));
  world.holds(0, gpu(0));
  world.holds(0, memory(2));
  world.workers.erase(world.workers.begin(), world.workers.begin() + 2);  // host 0
  EXPECT_EQ(world.safe().domains, 2U);
  world.workers.pop_back();
  EXPECT_EQ(world.safe().domains, 1U);
}

// Two layouts of one model: the version is as safe as the better one, and copies in both are not
// added up.
TEST(Safety, IsThatOfTheBestLayout) {
  RetentionWorld world(1, 1, 4);
  world.shards = {{Bytes(10), 0}, {Bytes(10), 0}, {Bytes(20), 1}};
  world.holds(0, gpu(0));
  world.holds(0, gpu(1));
  world.holds(1, gpu(2));
  world.holds(2, gpu(3));
  EXPECT_EQ(world.safe(), (Safety{1, 0, 1}));
  world.holds(2, gpu(0));
  EXPECT_EQ(world.safe(), (Safety{2, 1, 2}));
}

TEST(Safety, OfNothingIsWhatIsAskedFor) {
  RetentionWorld world(1, 1, 1);
  EXPECT_EQ(world.safe().domains, 2U);
  EXPECT_THAT(world.choose().offloads, IsEmpty());
  EXPECT_TRUE(world.leave({gpu(0)}).now());
}

TEST(ChooseHolders, LeavesAloneWhatIsFine) {
  RetentionWorld world(1, 2, 2);
  world.shards = {{Bytes(10)}};
  world.level = Level::Rack;
  world.holds(0, gpu(0));
  world.holds(0, gpu(3));
  const HolderChoice choice = world.choose();
  EXPECT_THAT(choice.offloads, IsEmpty());
  EXPECT_EQ(choice.reached, 2U);
  EXPECT_FALSE(choice.shortfall);
}

TEST(ChooseHolders, TakesTheNearestOtherDomain) {
  RetentionWorld world(2, 2, 2);
  world.shards = {{Bytes(10)}};
  world.holds(0, gpu(5));
  // Another host in the same rack, although others have more room.
  world.at(memory(4)).free = Bytes(10);
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{0, memory(4)}));
  world.at(memory(4)).free = Bytes(9);
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{0, memory(6)}));
  // Another rack of the same datacenter.
  world.level = Level::Rack;
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{0, memory(6)}));
  world.level = Level::Datacenter;
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{0, memory(0)}));
}

// A spot holder is a near source, though it counts for nothing.
TEST(ChooseHolders, SparesTheWan) {
  RetentionWorld world(2, 2, 1);
  world.shards = {{Bytes(10)}};
  world.k = 1;
  world.level = Level::Rack;
  world.holds(0, gpu(3));
  world.at(gpu(3)).reliable = false;
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{0, memory(3)}));
  world.at(memory(3)).live = false;
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{0, memory(2)}));
  world.at(memory(2)).leaving = true;
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{0, memory(0)}));
  world.at(memory(0)).reliable = false;
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{0, memory(1)}));
}

TEST(ChooseHolders, SpreadsOverFreeMemory) {
  RetentionWorld world(1, 1, 4);
  world.shards = {{Bytes(10)}, {Bytes(10)}, {Bytes(10)}, {Bytes(10)}};
  for (std::uint32_t s = 0; s < 4; ++s) world.holds(s, gpu(0));
  world.at(memory(3)).free = Bytes(115);
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{0, memory(3)}, Offload{1, memory(3)},
                                                   Offload{2, memory(1)}, Offload{3, memory(2)}));
}

TEST(ChooseHolders, DoesNotOrderWhatRuns) {
  RetentionWorld world(1, 1, 3);
  world.shards = {{Bytes(10)}};
  world.holds(0, gpu(0));
  world.order(world.choose().offloads.at(0));
  EXPECT_EQ(world.safe().domains, 1U);
  EXPECT_THAT(world.choose().offloads, IsEmpty());
  // Where it runs to is lost: another one.
  world.at(memory(1)).live = false;
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{0, memory(2)}));
}

// Shard 1 fits only where shard 0, the larger one, would rather go.
TEST(ChooseHolders, MakesWay) {
  RetentionWorld world(1, 1, 3);
  world.shards = {{Bytes(10)}, {Bytes(10)}};
  world.holds(0, gpu(0));
  world.holds(1, gpu(1));
  world.at(memory(0)).free = Bytes(0);
  world.at(memory(1)).free = Bytes(10);
  world.at(memory(2)).free = Bytes(12);
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{0, memory(1)}, Offload{1, memory(2)}));
}

// 3 + 3 and 2 + 2 + 2: neither the roomiest memory first nor making way finds that.
TEST(ChooseHolders, SearchesWhereSizesDiffer) {
  RetentionWorld world(1, 1, 3);
  world.k = 1;
  world.shards = {{Bytes(2)}, {Bytes(3)}, {Bytes(2)}, {Bytes(3)}, {Bytes(2)}};
  world.at(memory(0)).free = Bytes(6);
  world.at(memory(1)).free = Bytes(6);
  world.at(memory(2)).free = Bytes(0);
  EXPECT_EQ(world.choose().reached, 1U);
  EXPECT_EQ(world.choose().offloads.size(), 5U);
  world.at(memory(0)).free = Bytes(5);
  EXPECT_EQ(world.choose().reached, 0U);
}

// Two small shards, placed first since they are weaker, together fill the only memory where a large
// one may go; one of them moved away is not enough. With more copies than the search takes on.
TEST(ChooseHolders, LeavesRoomForTheLarge) {
  RetentionWorld world(1, 3, 2);
  world.k = 3;
  world.shards = {{Bytes(5)}, {Bytes(5)}, {Bytes(10)}};
  world.holds(0, gpu(1));
  world.holds(1, gpu(1));
  world.holds(2, gpu(2));
  world.holds(2, gpu(4));
  for (std::uint32_t h = 0; h < 6; ++h) world.at(memory(h)).free = Bytes(h == 0 ? 10 : 0);
  world.at(memory(2)).free = world.at(memory(4)).free = Bytes(1000);
  EXPECT_FALSE(world.choose().shortfall);
  for (std::uint32_t s = 3; s < 100; ++s) {
    world.shards.push_back({Bytes(10)});
    world.holds(s, gpu(0));
    world.holds(s, gpu(1));
  }
  const HolderChoice choice = world.choose();
  EXPECT_FALSE(choice.shortfall);
  EXPECT_THAT(choice.offloads, ::testing::Contains(Offload{2, memory(0)}));
}

TEST(ChooseHolders, SaysWhyNot) {
  RetentionWorld world(1, 2, 2);
  world.level = Level::Rack;
  world.shards = {{Bytes(10)}, {Bytes(141'000'000'000)}};
  world.holds(0, gpu(0));
  world.holds(1, gpu(0));
  HolderChoice choice = world.choose();
  EXPECT_EQ(choice.reached, 1U);
  EXPECT_EQ(to_string(choice.shortfall.value()),
            "no memory in a second rack: shard 1 needs 141 GB, the most that is free is 100 B");
  // What can be copied is.
  EXPECT_THAT(choice.offloads, ElementsAre(Offload{0, memory(2)}));

  world.k = 3;
  world.shards.pop_back();
  world.holdings.pop_back();
  choice = world.choose();
  EXPECT_EQ(choice.reached, 2U);
  EXPECT_THAT(choice.offloads, ElementsAre(Offload{0, memory(2)}));
  EXPECT_EQ(to_string(choice.shortfall.value()),
            "no third rack has reliable host memory for shard 0, which is to be in 3");
  world.k = 0xffffffffU;
  EXPECT_EQ(world.choose().reached, 2U);
}

// The weakest shards come first where memory is short.
TEST(ChooseHolders, HelpsTheWeakestFirst) {
  RetentionWorld world(1, 1, 3);
  world.k = 3;
  world.shards = {{Bytes(10)}, {Bytes(10)}};
  world.holds(0, gpu(0));
  world.holds(0, gpu(1));
  world.holds(1, gpu(2));
  for (std::uint32_t h = 0; h < 3; ++h) world.at(memory(h)).free = Bytes(h == 0 ? 10 : 0);
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{1, memory(0)}));
  EXPECT_EQ(world.choose().reached, 2U);
}

// Of two shards that lack as much, the larger one.
TEST(ChooseHolders, PlacesLargeShardsFirst) {
  RetentionWorld world(1, 1, 2);
  world.shards = {{Bytes(5)}, {Bytes(10)}};
  for (std::uint32_t s = 0; s < 2; ++s) world.holds(s, gpu(0));
  world.at(memory(1)).free = Bytes(10);
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{1, memory(1)}));
}

// Two racks with holders are equally near; who is dead is near nobody.
TEST(ChooseHolders, AsksAllWhoAreNear) {
  RetentionWorld world(1, 3, 2);
  world.k = 3;
  world.shards = {{Bytes(10)}};
  world.holds(0, gpu(0));
  world.holds(0, gpu(2));
  world.at(memory(3)).free = Bytes(101);
  world.at(memory(4)).free = Bytes(102);
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{0, memory(3)}));
  world.k = 2;
  world.at(gpu(2)).live = false;
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{0, memory(1)}));
  world.at(memory(1)).live = false;
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{0, memory(4)}));
}

TEST(ChooseHolders, CompletesTheCheapestLayout) {
  RetentionWorld world(1, 1, 3);
  world.shards = {{Bytes(10), 0}, {Bytes(10), 0}, {Bytes(15), 1}};
  for (std::uint32_t s = 0; s < 3; ++s) world.holds(s, gpu(0));
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{2, memory(1)}));
  EXPECT_EQ(world.choose().layout, 1U);
  world.holds(1, gpu(1));
  EXPECT_THAT(world.choose().offloads, ElementsAre(Offload{0, memory(1)}));
  EXPECT_EQ(world.choose().layout, 0U);
  // If it does not fit, the other one.
  world.at(memory(1)).free = world.at(memory(2)).free = Bytes(10);
  world.shards[0].bytes = Bytes(11);
  EXPECT_EQ(world.choose().reached, 1U);
  world.at(memory(2)).free = Bytes(15);
  world.at(memory(1)).free = Bytes(0);
  world.shards[0].bytes = Bytes(16);
  world.shards[2].bytes = Bytes(15);
  EXPECT_EQ(world.choose().layout, 1U);
  EXPECT_EQ(world.choose().reached, 2U);
}

TEST(MayLeave, LetsGoWhomNobodyNeeds) {
  RetentionWorld world(1, 1, 4);
  world.shards = {{Bytes(10)}};
  world.holds(0, gpu(0));
  world.holds(0, memory(0));
  world.holds(0, gpu(1));
  world.holds(0, gpu(2));
  world.holds(0, gpu(3));
  world.at(gpu(3)).reliable = false;
  EXPECT_TRUE(world.leave({gpu(1)}).now());
  EXPECT_TRUE(world.leave({gpu(0), gpu(1)}).now());  // the memory of host 0 remains
  EXPECT_TRUE(world.leave({gpu(3)}).now());
  EXPECT_FALSE(world.leave({gpu(1), gpu(2)}).now());
  // Below k, nobody who counts may go, and whoever does not may.
  world.k = 9;
  EXPECT_FALSE(world.leave({gpu(1)}).now());
  EXPECT_TRUE(world.leave({gpu(0)}).now());
  EXPECT_TRUE(world.leave({gpu(3)}).now());
}

TEST(MayLeave, WantsTheLastCopiesInHostMemory) {
  RetentionWorld world(1, 1, 3);
  world.k = 1;
  world.shards = {{Bytes(10)}, {Bytes(10)}};
  world.holds(0, gpu(0));
  world.holds(1, gpu(1));
  LeaveAnswer answer = world.leave({gpu(0), gpu(1)});
  EXPECT_FALSE(answer.now());
  // Over PCIe, in the own host.
  EXPECT_THAT(answer.start, ElementsAre(Offload{0, memory(0)}, Offload{1, memory(1)}));
  EXPECT_THAT(answer.await, IsEmpty());
  for (const Offload& offload : answer.start) world.order(offload);
  answer = world.leave({gpu(0), gpu(1)});
  EXPECT_FALSE(answer.now());
  EXPECT_THAT(answer.start, IsEmpty());
  EXPECT_THAT(answer.await, ElementsAre(Offload{0, memory(0)}, Offload{1, memory(1)}));
  world.complete_offloads();
  EXPECT_TRUE(world.leave({gpu(0), gpu(1)}).now());
}

TEST(MayLeave, AwaitsNoMoreThanIsNeeded) {
  RetentionWorld world(1, 1, 3);
  world.k = 1;
  world.shards = {{Bytes(10)}};
  world.holds(0, gpu(0));
  world.holds(0, memory(2), CopyState::Offloading);
  world.holds(0, memory(1), CopyState::Offloading);
  const LeaveAnswer answer = world.leave({gpu(0)});
  EXPECT_THAT(answer.start, IsEmpty());
  EXPECT_THAT(answer.await, ElementsAre(Offload{0, memory(1)}));
}

// The copy that is made so that a worker may go does not hold it back in its turn.
TEST(MayLeave, KeepsToItsFirstAnswer) {
  RetentionWorld world(1, 1, 2);
  world.k = 3;
  world.shards = {{Bytes(10)}};
  world.at(memory(0)).free = Bytes(0);
  world.holds(0, gpu(0));
  const LeaveAnswer first = world.leave({gpu(0)});
  EXPECT_THAT(first.floor, ElementsAre(1));
  ASSERT_THAT(first.start, ElementsAre(Offload{0, memory(1)}));
  world.order(first.start[0]);
  EXPECT_FALSE(world.leave({gpu(0)}, first.floor).now());
  world.complete_offloads();
  EXPECT_TRUE(world.leave({gpu(0)}, first.floor).now());
  EXPECT_FALSE(world.leave({gpu(0)}).now());
  // Whoever else goes must now leave what is there.
  EXPECT_FALSE(world.leave({memory(1)}).now());
}

// A host goes with its memory.
TEST(MayLeave, DoesNotOffloadToWhoLeaves) {
  RetentionWorld world(1, 1, 2);
  world.k = 1;
  world.shards = {{Bytes(10)}};
  world.holds(0, gpu(0));
  EXPECT_THAT(world.leave({gpu(0), memory(0)}).start, ElementsAre(Offload{0, memory(1)}));
  world.at(memory(1)).free = Bytes(9);
  const LeaveAnswer answer = world.leave({gpu(0), memory(0)});
  EXPECT_FALSE(answer.now());
  EXPECT_EQ(to_string(answer.shortfall.value()),
            "no memory in a first host: shard 0 needs 10 B, the most that is free is 9 B");
}

// What is safe in one layout need not be kept in another.
TEST(MayLeave, AsksOneLayoutThatIsSafe) {
  RetentionWorld world(1, 1, 4);
  world.shards = {{Bytes(10), 0}, {Bytes(20), 1}};
  world.holds(0, gpu(0));
  world.holds(0, gpu(1));
  world.holds(1, gpu(2));
  EXPECT_TRUE(world.leave({gpu(2)}).now());
  EXPECT_THAT(world.leave({gpu(1)}).start, ElementsAre(Offload{0, memory(1)}));
  world.holds(1, gpu(3));
  EXPECT_TRUE(world.leave({gpu(1)}).now());
  EXPECT_TRUE(world.leave({gpu(2)}).now());
  EXPECT_FALSE(world.leave({gpu(1), gpu(2)}).now());
}

// The layout that lacks less does not fit anywhere, the other one does.
TEST(MayLeave, TakesTheLayoutThatFits) {
  RetentionWorld world(1, 1, 2);
  world.k = 1;
  world.shards = {{Bytes(10), 0}, {Bytes(6), 1}, {Bytes(6), 1}};
  for (std::uint32_t s = 0; s < 3; ++s) world.holds(s, gpu(0));
  world.at(memory(0)).free = Bytes(7);
  world.at(memory(1)).free = Bytes(6);
  const LeaveAnswer answer = world.leave({gpu(0)});
  EXPECT_FALSE(answer.shortfall);
  EXPECT_THAT(answer.start, ElementsAre(Offload{1, memory(0)}, Offload{2, memory(1)}));
}

TEST(MayLeave, KeepsPartsWhileNoLayoutIsComplete) {
  RetentionWorld world(1, 1, 3);
  world.shards = {{Bytes(10), 0}, {Bytes(10), 0}, {Bytes(20), 1}};
  world.holds(0, gpu(0));
  EXPECT_EQ(world.safe().domains, 0U);
  EXPECT_THAT(world.leave({gpu(0)}).start, ElementsAre(Offload{0, memory(0)}));
}

}  // namespace
}  // namespace holdfast
