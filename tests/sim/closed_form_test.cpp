// Simulated times against closed forms, to one part in 10^9. Above each assertion: the system and
// the time it must take. Everywhere: block time u = 1 ms, path latency L = 5 us, digests as said.
#include <gtest/gtest.h>

#include <cmath>

#include "core/topology/capacity_share.hpp"
#include "sim/simulation.hpp"
#include "tests/sim/sim_fixtures.hpp"

namespace holdfast::sim::testing {
namespace {

constexpr double kTolerance = 1e-9;

SimulationResult run(const Topology& topology, const Demand& demand, const Plan& plan,
                     const SimulationOptions& options = {}) {
  const Router router(topology);
  SimulationResult result = simulate(router, demand, plan, options);
  EXPECT_FALSE(result.failure) << *result.failure;
  EXPECT_GT(result.makespan, Time(0));
  return result;
}

void expect_time(Time measured, Time expected) {
  EXPECT_LE(std::abs((measured - expected).seconds()), kTolerance * expected.seconds())
      << to_string(measured) << " instead of " << to_string(expected);
}

// One flow: the request takes L, B blocks follow each other without a gap, the last byte takes L.
//   T = 2 L + B u
TEST(ClosedForm, SingleFlow) {
  const Topology topology = make_star({});
  for (const std::uint32_t blocks : {1U, 2U, 40U, 3000U}) {
    SCOPED_TRACE(blocks);
    const Demand demand = make_demand(topology, 2, blocks);
    const auto result = run(topology, demand, tree_plan(topology, demand, chain_parents(1), 2));
    expect_time(result.makespan, kLatency * 2 + kBlockTime * blocks);
    EXPECT_EQ(result.completed[1], result.makespan);
    EXPECT_EQ(result.completed[0], Time(0));
  }
}

// Others keep two fifths of every link: transports honour what the topology leaves.
//   T = 2 L + n B u / 0.6
TEST(ClosedForm, OtherTrafficIsLeftItsShare) {
  const Topology whole = make_star({.hosts = 4});
  const std::vector<std::uint32_t> taken(whole.links().size(), kWholeInMillionths * 2 / 5);
  const Topology topology = beside_other_traffic(whole, taken);
  const Demand demand = make_demand(topology, 4, 60);
  const auto result = run(topology, demand, tree_plan(topology, demand, {0, 0, 0}, 2));
  const Time transfer = transfer_time(kBlock * 60 * 3, Rate(600'000'000));
  for (std::uint32_t i = 1; i < 4; ++i) {
    expect_time(result.completed[i], kLatency * 2 + transfer);
  }
}

// The paper-like figure: 50 GB over 25 GB/s with 2 x 5 us, and a last digest at 2 TB/s.
//   T = 2 s + 2 L + b / 2 TB/s
TEST(ClosedForm, FiftyGigabytes) {
  const Topology topology =
      make_star({.rate = Rate(25'000'000'000), .digest_rate = Rate(2'000'000'000'000)});
  Demand demand = make_demand(topology, 2, 500);
  demand.block_size = Bytes(100'000'000);
  demand.block_bytes.assign(500, demand.block_size);
  const auto result = run(topology, demand, tree_plan(topology, demand, chain_parents(1), 2));
  expect_time(result.makespan, seconds(2) + kLatency * 2 + microseconds(50));
}

// Rates that no picosecond divides: 7 GB/s, blocks of 1 MB, T = 2 L + B x 1/7000 s. Rounding must
// not add up over 10,000 blocks.
TEST(ClosedForm, OddRates) {
  const Topology topology = make_star({.rate = Rate(7'000'000'000)});
  const Demand demand = make_demand(topology, 2, 10'000);
  const auto result = run(topology, demand, tree_plan(topology, demand, chain_parents(1), 2));
  expect_time(result.makespan, kLatency * 2 + transfer_time(kBlock * 10'000, Rate(7'000'000'000)));
}

// Fair sharing: n readers of one source, each at 1/n of its rate, all at once.
//   T = 2 L + n B u, for every reader
TEST(ClosedForm, FairSharing) {
  for (const std::uint32_t readers : {2U, 3U, 7U, 64U}) {
    SCOPED_TRACE(readers);
    const Topology topology = make_star({.hosts = readers + 1});
    const Demand demand = make_demand(topology, readers + 1, 20);
    const std::vector<std::uint32_t> parents(readers, 0);
    const auto result = run(topology, demand, tree_plan(topology, demand, parents, 2));
    for (std::uint32_t i = 1; i <= readers; ++i) {
      expect_time(result.completed[i], kLatency * 2 + kBlockTime * 20 * readers);
    }
  }
}

// Max-min: 10 blocks to workers 1 and 2, 20 more blocks to worker 2 alone: three edges, a third of
// the source each, until the short ones are done (30 u); the last 10 blocks have it alone (10 u).
//   T1 = 2 L + 30 u,  T2 = 2 L + 40 u
TEST(ClosedForm, WhatIsLeftIsSharedAnew) {
  const Topology topology = make_star({.hosts = 3});
  DemandBuilder builder("model", {1, 1}, kBlock, std::vector<Bytes>(30, kBlock));
  for (const char* name : {"gpu0", "gpu1", "gpu2"}) {
    builder.add_worker({.node = topology.find_node(name), .memory_free = Bytes(1'000'000'000)});
  }
  builder.holds(WorkerId(0U), {BlockId(0U), 30});
  builder.wants(WorkerId(1U), {BlockId(0U), 10});
  builder.wants(WorkerId(2U), {BlockId(0U), 30});
  const Demand demand = std::move(builder).build();
  ASSERT_EQ(demand.classes.size(), 2U);
  const std::size_t both = demand.classes[0].receivers.size() == 2 ? 0 : 1;
  Stripe shared = make_stripe(topology, demand, {0, 1, 10}, {0, 0}, 2);
  shared.block_class = ClassId(both);
  Stripe alone{ClassId(1 - both), {0, 1, 20}, {shared.edges[1]}};
  alone.edges[0].path.stream = 1;
  const auto result = run(topology, demand, make_plan(topology, demand, {shared, alone}));
  expect_time(result.completed[1], kLatency * 2 + kBlockTime * 30);
  expect_time(result.completed[2], kLatency * 2 + kBlockTime * 40);
  // Over one path worker 2's two edges are one connection: half of the source for each worker.
  //   T1 = 2 L + 20 u,  T2 = 2 L + 40 u
  alone.edges[0].path.stream = 0;
  const auto joint = run(topology, demand, make_plan(topology, demand, {shared, alone}));
  expect_time(joint.completed[1], kLatency * 2 + kBlockTime * 20);
  expect_time(joint.completed[2], kLatency * 2 + kBlockTime * 40);
}

// Two flows without a common link, 0.3 us of 1 ms apart: neither ends with the other.
//   T2 = 2 L + u,  T3 = 2 L + 1.0003 u
TEST(ClosedForm, NearlySimultaneousEndsStayApart) {
  const Topology topology = make_star({.hosts = 4});
  const Bytes longer(1'000'300);
  DemandBuilder builder("model", {1, 1}, longer, {kBlock, longer});
  for (const char* name : {"gpu0", "gpu1", "gpu2", "gpu3"}) {
    builder.add_worker({.node = topology.find_node(name), .memory_free = Bytes(1'000'000'000)});
  }
  std::vector<Stripe> stripes;
  for (std::uint32_t i = 0; i < 2; ++i) {
    builder.holds(WorkerId(i), {BlockId(i), 1});
    builder.wants(WorkerId(2 + i), {BlockId(i), 1});
  }
  const Demand demand = std::move(builder).build();
  for (std::uint32_t c = 0; c < 2; ++c) {
    const WorkerId parent = demand.classes[c].holders[0];
    const WorkerId child = demand.classes[c].receivers[0];
    stripes.push_back({ClassId(c),
                       {0, 1, 1},
                       {{child, parent, {}, path_between(topology, demand, parent, child), 2}}});
  }
  const auto result = run(topology, demand, make_plan(topology, demand, stripes));
  expect_time(result.completed[2], kLatency * 2 + kBlockTime);
  expect_time(result.completed[3], kLatency * 2 + kBlockTime + nanoseconds(300));
}

// A chain of h hops: B + h - 1 block times; each hop costs a request and an arrival, each hop but
// the first a word that the block is there.
//   T = (B + h - 1) u + 2 h L + (h - 1) L
TEST(ClosedForm, Chain) {
  for (const std::uint32_t hops : {2U, 3U, 10U, 50U}) {
    const Topology topology = make_star({.hosts = hops + 1});
    for (const std::uint32_t blocks : {1U, 2U, 64U}) {
      SCOPED_TRACE(::testing::Message() << hops << " hops, " << blocks << " blocks");
      const Demand demand = make_demand(topology, hops + 1, blocks);
      const auto result =
          run(topology, demand, tree_plan(topology, demand, chain_parents(hops), 2));
      expect_time(result.makespan, kBlockTime * (blocks + hops - 1) + kLatency * (3 * hops - 1));
    }
  }
}

// Digests, g a block: each hop of a chain adds one where they are faster than the network; where
// they are slower they are the pace.
//   g = u / 4:  T = (B + h - 1) u + h g + (3 h - 1) L
//   g = 2 u:    T = h u + (B + h - 1) g + (3 h - 1) L
TEST(ClosedForm, ChainWithDigests) {
  const std::uint32_t hops = 5;
  const std::uint32_t blocks = 30;
  const Time words = kLatency * (3 * hops - 1);
  for (const bool fast : {true, false}) {
    SCOPED_TRACE(fast);
    const Topology topology = make_star(
        {.hosts = hops + 1, .digest_rate = fast ? Rate(4'000'000'000) : Rate(500'000'000)});
    const Demand demand = make_demand(topology, hops + 1, blocks);
    const Plan plan = tree_plan(topology, demand, chain_parents(hops), 3);
    const Time expected = fast ? kBlockTime * (blocks + hops - 1) + (kBlockTime / 4) * hops + words
                               : kBlockTime * hops + kBlockTime * 2 * (blocks + hops - 1) + words;
    expect_time(run(topology, demand, plan).makespan, expected);
    const Demand trusting = make_demand(topology, hops + 1, blocks, false);
    expect_time(run(topology, trusting, plan).makespan, kBlockTime * (blocks + hops - 1) + words);
  }
}

// Two complementary trees over n = 2^d - 1 receivers, half of the B blocks in each: an inner node
// serves two children at half its rate, so that a block takes 2 u an edge; the deepest leaf is d
// edges from the root.
//   T = (B / 2 + d - 1) x 2 u + (3 d - 1) L  =  B u (1 + 2 (d - 1) / B) + (3 d - 1) L
TEST(ClosedForm, TwoTree) {
  for (const std::uint32_t depth : {2U, 3U, 4U, 6U}) {
    for (const std::uint32_t blocks : {8U, 64U}) {
      SCOPED_TRACE(::testing::Message() << "depth " << depth << ", " << blocks << " blocks");
      const std::uint32_t receivers = (1U << depth) - 1;
      const Topology topology = make_star({.hosts = receivers + 1});
      const Demand demand = make_demand(topology, receivers + 1, blocks);
      const auto result = run(topology, demand, two_tree_plan(topology, demand, 2));
      expect_time(result.makespan,
                  kBlockTime * (blocks + 2 * (depth - 1)) + kLatency * (3 * depth - 1));
    }
  }
}

// With one block asked for at a time each pays the round trip; with two, only the first does.
//   W = 1: T = B (u + 2 L),  W = 2: T = B u + 2 L
TEST(ClosedForm, WindowHidesLatency) {
  const Topology topology = make_star({});
  const Demand demand = make_demand(topology, 2, 10);
  const auto time = [&](std::uint32_t window) {
    return run(topology, demand, tree_plan(topology, demand, chain_parents(1), window)).makespan;
  };
  expect_time(time(1), (kBlockTime + kLatency * 2) * 10);
  expect_time(time(2), kBlockTime * 10 + kLatency * 2);
  expect_time(time(8), kBlockTime * 10 + kLatency * 2);
}

// A stream over the WAN is bounded by its cap c = rate / 8 whatever the link has to give, each
// stream by itself; L' = 30 ms + 5 us.
//   one stream: T = 2 L' + 8 B u;  two streams with half of the blocks each: T = 2 L' + 4 B u
TEST(ClosedForm, WanStreams) {
  const Topology topology = make_wan(1);
  const Demand demand = make_demand(topology, 2, 16);
  const Time latency = kWanLatency + kLatency;
  const auto one = run(topology, demand, tree_plan(topology, demand, {0}, 64));
  expect_time(one.makespan, latency * 2 + kBlockTime * 8 * 16);
  EXPECT_EQ(one.moved.wan, kBlock * 16);
  std::vector<Stripe> stripes;
  for (std::uint32_t side = 0; side < 2; ++side) {
    stripes.push_back(make_stripe(topology, demand, {side, 2, 16}, {0}, 64));
    stripes.back().edges[0].path.stream = side;
  }
  const auto two = run(topology, demand, make_plan(topology, demand, stripes));
  expect_time(two.makespan, latency * 2 + kBlockTime * 4 * 16);
  EXPECT_EQ(two.moved.wan, kBlock * 16);
}

}  // namespace
}  // namespace holdfast::sim::testing
