// The greedy baseline, carried out: what it assigned is a plan that the checker accepts.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <optional>
#include <random>

#include "core/plan/bound.hpp"
#include "core/plan/checker.hpp"
#include "core/plan/greedy.hpp"
#include "sim/simulation.hpp"
#include "tests/plan/cluster.hpp"
#include "tests/sim/sim_fixtures.hpp"

namespace holdfast::sim::testing {
namespace {

using Cap = std::optional<std::uint32_t>;

std::string listing(const std::vector<Violation>& violations) {
  std::string text;
  for (const Violation& v : violations) {
    text += fmt::format("{} {}: {}\n", to_string(v.code), v.pointer, v.message);
  }
  return text;
}

TEST(GreedyRun, DeliversEverythingByAPlanThatTheCheckerAccepts) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Topology topology = testing_support::make_cluster(testing_support::random_shape(random));
    const Demand demand = testing_support::random_demand(topology, random);
    const Router router(topology);
    const Bound bound = lower_bound(topology, demand);
    const std::vector<Bytes> missing = missing_bytes(demand);
    Bytes all;
    for (const Bytes bytes : missing) all += bytes;
    for (const Cap cap : {Cap(), Cap(1), Cap(2)}) {
      SCOPED_TRACE(cap ? fmt::format("cap {}", *cap) : "no cap");
      const SimulationResult result = simulate_greedy(router, demand, cap);
      ASSERT_EQ(result.failure, std::nullopt);
      ASSERT_TRUE(result.plan);
      EXPECT_EQ(listing(check(*result.plan, demand, router)), "");
      EXPECT_EQ(result.moved.gpu, all);
      EXPECT_GE(result.makespan.seconds(), bound.time().seconds() * (1 - 1e-9));
      for (std::size_t w = 0; w < missing.size(); ++w) {
        EXPECT_EQ(result.completed[w] > Time(0), missing[w] > Bytes(0)) << "worker " << w;
      }
    }
  }
}

TEST(GreedyRun, IsRepeatedBitForBit) {
  std::mt19937_64 random(5);
  const Topology topology = testing_support::make_cluster(testing_support::random_shape(random));
  const Demand demand = testing_support::random_demand(topology, random);
  const Router router(topology);
  const SimulationResult first = simulate_greedy(router, demand, 2);
  const SimulationResult second = simulate_greedy(router, demand, 2);
  EXPECT_EQ(first.plan, second.plan);
  EXPECT_EQ(first.completed, second.completed);
  EXPECT_GT(first.makespan, Time(0));
}

// Two hosts, 65 blocks: a piece of 64 and one of 1, each read in full before the next is asked for.
//   request there            1 latency
//   64 blocks                64 block times; each is asked for while the one before is read
//   the last one's way       1 latency
//   word and answer          2 latencies
// and the same again for one block.
TEST(GreedyRun, AsksAgainAfterEachPiece) {
  const Topology topology = make_star({.hosts = 2});
  const Demand demand = make_demand(topology, 2, 65);
  const Router router(topology);
  const SimulationResult result = simulate_greedy(router, demand, {});
  ASSERT_EQ(result.failure, std::nullopt);
  const Time expected = kBlockTime * 65 + kLatency * (2 + 2 + 2);
  EXPECT_NEAR(result.makespan.seconds(), expected.seconds(), 1e-9);
  ASSERT_EQ(result.plan->stripes.size(), 2U);
  EXPECT_EQ(result.plan->stripes[1].blocks, (BlockSelection{64, 1, 65}));
}

// A line of receivers: what the rules become on one switch. Blocks are passed on as they arrive.
TEST(GreedyRun, PassesBlocksOnAsTheyArrive) {
  constexpr std::uint32_t kReceivers = 6;
  const Topology topology = make_star({.hosts = kReceivers + 1});
  const Demand demand = make_demand(topology, kReceivers + 1, kGreedyPiece);
  const Router router(topology);
  const SimulationResult result = simulate_greedy(router, demand, {});
  ASSERT_EQ(result.failure, std::nullopt);
  // Each further receiver is one block behind, and a word and a read of latency.
  const Time fill = (kBlockTime + kLatency * 3) * (kReceivers - 1);
  const Time expected = kBlockTime * kGreedyPiece + kLatency * 2 + fill;
  EXPECT_NEAR(result.makespan.seconds(), expected.seconds(), 1e-9);
  for (const Edge& edge : result.plan->stripes[0].edges) {
    EXPECT_EQ(edge.parent.value() + 1, edge.child.value());
  }
}

}  // namespace
}  // namespace holdfast::sim::testing
