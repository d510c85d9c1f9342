// Closed forms: where the virtual network's model is exact, so is the time of a plan.
#include <gtest/gtest.h>

#include "tests/engine/virtual_cluster.hpp"

namespace holdfast::testing {
namespace {

constexpr Rate kRate(1'000'000'000);
constexpr Bytes kBlock(1'000'000);  // a block takes 1 ms
constexpr Time kLatency = microseconds(5);

Time run_time(const Demand& demand, const Plan& plan, const EngineConfig& engine = {},
              Rate digest = {}) {
  ClusterOptions options;
  options.real_bytes = false;
  options.network.rate = kRate;
  options.network.latency = kLatency;
  options.network.digest_rate = digest;
  options.engine = engine;
  Cluster cluster(demand, plan, options);
  EXPECT_TRUE(cluster.run());
  return *std::max_element(cluster.completed().begin(), cluster.completed().end());
}

std::vector<std::uint32_t> chain(std::uint32_t receivers) {
  std::vector<std::uint32_t> parents;
  for (std::uint32_t w = 0; w < receivers; ++w) parents.push_back(w);
  return parents;
}

// One hop: request, all blocks back to back, arrival.
TEST(EngineTimes, SingleFlow) {
  const Demand demand = simple_demand(1, 40, kBlock);
  EXPECT_EQ(run_time(demand, tree_plan(demand, chain(1), 2)), milliseconds(40) + kLatency * 2);
}

// (blocks + hops - 1) block times, two latencies a hop, and one for each word between hops.
TEST(EngineTimes, Chain) {
  for (const std::uint32_t hops : {2U, 3U, 10U, 50U}) {
    for (const std::uint32_t blocks : {1U, 2U, 64U}) {
      SCOPED_TRACE(::testing::Message() << hops << " hops, " << blocks << " blocks");
      const Demand demand = simple_demand(hops, blocks, kBlock);
      EXPECT_EQ(run_time(demand, tree_plan(demand, chain(hops), 2)),
                milliseconds(blocks + hops - 1) + kLatency * (2 * hops) + kLatency * (hops - 1));
    }
  }
}

// Each hop of a chain adds the digest of one block; where digests are slower than the network they
// are the pipeline's pace.
TEST(EngineTimes, ChainWithDigests) {
  const std::uint32_t hops = 5;
  const std::uint32_t blocks = 30;
  const Demand demand = simple_demand(hops, blocks, kBlock);
  const Plan plan = tree_plan(demand, chain(hops), 3);
  const Time words = kLatency * (3 * hops - 1);
  EXPECT_EQ(run_time(demand, plan, {}, Rate(4'000'000'000)),
            milliseconds(blocks + hops - 1) + microseconds(250) * hops + words);
  EXPECT_EQ(run_time(demand, plan, {}, Rate(500'000'000)),
            milliseconds(hops) + milliseconds(2) * (blocks + hops - 1) + words);
  // Not verified: no digest, whatever the rate.
  Demand trusting = demand;
  trusting.verify = false;
  EXPECT_EQ(run_time(trusting, plan, {}, Rate(500'000'000)),
            milliseconds(blocks + hops - 1) + words);
}

// A source serves its readers in turn: n readers take n times as long.
TEST(EngineTimes, Star) {
  const std::uint32_t receivers = 7;
  const Demand demand = simple_demand(receivers, 20, kBlock);
  EXPECT_EQ(run_time(demand, tree_plan(demand, std::vector<std::uint32_t>(receivers, 0), 2)),
            milliseconds(20 * receivers) + kLatency * 2);
}

// With one block asked for at a time, each pays the round trip; with two, none but the first does.
TEST(EngineTimes, WindowHidesLatency) {
  const Demand demand = simple_demand(1, 10, kBlock);
  EXPECT_EQ(run_time(demand, tree_plan(demand, chain(1), 1)),
            (milliseconds(1) + kLatency * 2) * 10);
  EXPECT_EQ(run_time(demand, tree_plan(demand, chain(1), 2)), milliseconds(10) + kLatency * 2);
}

// Two stripes in opposite directions: both workers receive from the holder and from each other.
TEST(EngineTimes, TwoStripesShareAPort) {
  const Demand demand = simple_demand(2, 20, kBlock);
  Plan plan;
  for (const std::uint32_t half : {0U, 1U}) {
    Stripe stripe;
    stripe.block_class = ClassId(0U);
    stripe.blocks = {half, 2, 20};
    Edge first;
    first.child = WorkerId(1U);
    first.parent = WorkerId(half == 0 ? 0U : 2U);
    Edge second;
    second.child = WorkerId(2U);
    second.parent = WorkerId(half == 0 ? 1U : 0U);
    stripe.edges = {first, second};
    plan.stripes.push_back(stripe);
  }
  // The holder serves the two first requests of worker 1, so that the first block reaches worker 2
  // by way of worker 1, after two block times and five latencies (request, data, word, request,
  // data). Its port then takes in 20 blocks without a gap; the last goes on to worker 1.
  EXPECT_EQ(run_time(demand, plan),
            milliseconds(2) + kLatency * 5 + milliseconds(19) + milliseconds(1) + kLatency * 3);
}

}  // namespace
}  // namespace holdfast::testing
