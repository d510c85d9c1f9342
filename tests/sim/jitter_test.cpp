// Block times that vary, and links of which others keep a share.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/topology/capacity_share.hpp"
#include "sim/block_jitter.hpp"
#include "sim/result_codec.hpp"
#include "sim/simulation.hpp"
#include "tests/sim/sim_fixtures.hpp"

namespace holdfast::sim::testing {
namespace {

SimulationResult run(const Topology& topology, const Demand& demand, const Plan& plan,
                     std::uint32_t jitter = 0, std::uint64_t seed = 0) {
  SimulationOptions options;
  options.jitter = jitter;
  options.seed = seed;
  return simulate(Router(topology), demand, plan, options);
}

TEST(BlockJitter, DrawsEvenlyAroundNothing) {
  const std::uint64_t seed = 7;
  constexpr std::uint32_t kWidth = 50'000;
  const BlockJitter jitter(kWidth, seed);
  const std::uint64_t connection = jitter.connection(WorkerId(3U), WorkerId(1U), {});
  constexpr int kDraws = 100'000;
  constexpr int kBuckets = 10;
  double sum = 0;
  std::array<int, kBuckets> histogram{};
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const Bytes amount = jitter.amount(kBlock, connection, i * kBlock.count());
    const double x = static_cast<double>(amount.count()) / 1e6 - 1;
    ASSERT_LE(std::abs(x), 0.05 + 1e-6);
    sum += x;
    ++histogram[static_cast<std::size_t>(std::min(9.0, (x / 0.05 + 1) * kBuckets / 2))];
  }
  // Five standard deviations of the mean of a uniform draw, and of a bucket's count.
  EXPECT_LE(std::abs(sum / kDraws), 5 * 0.05 / std::sqrt(3.0 * kDraws));
  for (const int count : histogram) EXPECT_NEAR(count, 10'000, 5 * std::sqrt(9'000));
}

TEST(BlockJitter, DependsOnEverythingThatNamesABlockAndOnNothingElse) {
  const BlockJitter jitter(500'000, 1);
  const auto draw = [](const BlockJitter& of, std::uint32_t reader, std::uint32_t source,
                       const Path& path, std::uint64_t offset) {
    return of.amount(kBlock, of.connection(WorkerId(reader), WorkerId(source), path), offset);
  };
  const Path path{NodeId(4U), NodeId(5U), 0};
  const Bytes first = draw(jitter, 1, 2, path, 0);
  EXPECT_EQ(draw(jitter, 1, 2, path, 0), first);
  EXPECT_NE(draw(jitter, 2, 1, path, 0), first);
  EXPECT_NE(draw(jitter, 1, 3, path, 0), first);
  EXPECT_NE(draw(jitter, 1, 2, {NodeId(5U), NodeId(4U), 0}, 0), first);
  EXPECT_NE(draw(jitter, 1, 2, {NodeId(4U), NodeId(5U), 1}, 0), first);
  EXPECT_NE(draw(jitter, 1, 2, path, 1), first);
  EXPECT_NE(draw(BlockJitter(500'000, 2), 1, 2, path, 0), first);
  EXPECT_EQ(draw(BlockJitter(0, 2), 1, 2, path, 0), kBlock);
  EXPECT_EQ(jitter.amount(Bytes(0), 9, 9), Bytes(0));
  EXPECT_GE(BlockJitter(999'999, 1).amount(Bytes(1), 9, 9), Bytes(1));
}

TEST(BlockJitter, CountsPayloadInProportion) {
  EXPECT_EQ(payload_of(kBlock, Bytes(123), kBlock), Bytes(123));
  EXPECT_EQ(payload_of(Bytes(1'000), Bytes(550), Bytes(1'100)), Bytes(500));
  EXPECT_EQ(payload_of(Bytes(1'000), Bytes(900), Bytes(900)), Bytes(1'000));
}

// One edge: the blocks' amounts follow each other at the link's rate, after a round trip.
TEST(Jitter, OneEdgeTakesTheSumOfItsBlocks) {
  const Topology topology = make_star({});
  constexpr std::uint32_t kBlocks = 40;
  const Demand demand = make_demand(topology, 2, kBlocks);
  const Plan plan = tree_plan(topology, demand, chain_parents(1), 4);
  const BlockJitter jitter(200'000, 11);
  const std::uint64_t connection =
      jitter.connection(WorkerId(1U), WorkerId(0U), plan.stripes[0].edges[0].path);
  Bytes all;
  for (std::uint64_t b = 0; b < kBlocks; ++b) {
    all += jitter.amount(kBlock, connection, b * kBlock.count());
  }
  const auto result = run(topology, demand, plan, 200'000, 11);
  const Time expected = kLatency * 2 + transfer_time(all, kRate);
  EXPECT_NEAR(static_cast<double>((result.makespan - expected).picoseconds()), 0, 100);
  EXPECT_EQ(result.moved.gpu, kBlock * kBlocks);  // the payload is what it was
}

// A read that is given up half-way has moved its payload in proportion to what its flow had.
TEST(Jitter, AReadThatIsCutOffCountsItsPayload) {
  const Topology topology = make_star({});
  const Demand demand = make_demand(topology, 2, 10);
  const Plan plan = tree_plan(topology, demand, chain_parents(1), 2);
  SimulationOptions options;
  options.jitter = 400'000;
  options.seed = 3;
  options.read_deadline = microseconds(1'500);
  const auto result = simulate(Router(topology), demand, plan, options);
  ASSERT_TRUE(result.failure);
  const BlockJitter jitter(options.jitter, options.seed);
  const std::uint64_t connection =
      jitter.connection(WorkerId(1U), WorkerId(0U), plan.stripes[0].edges[0].path);
  const Bytes first = jitter.amount(kBlock, connection, 0);
  const Bytes second = jitter.amount(kBlock, connection, kBlock.count());
  ASSERT_LT(first, Bytes(1'495'000));
  ASSERT_EQ(result.deliveries, 1U);
  // The flows ran from one latency on, 1,000 bytes a microsecond.
  const Bytes moved = Bytes(1'495'000) - first;
  EXPECT_NEAR(static_cast<double>(result.moved.gpu.count()),
              static_cast<double>((kBlock + payload_of(kBlock, moved, second)).count()), 2);
}

TEST(Jitter, NoneIsTheSameBitForBit) {
  const Topology topology = make_star({.hosts = 12, .digest_rate = Rate(3'000'000'000)});
  const Demand demand = make_demand(topology, 12, 30);
  const Plan plan = two_tree_plan(topology, demand, 2);
  EXPECT_EQ(encode_result(run(topology, demand, plan, 0, 5)),
            encode_result(simulate(Router(topology), demand, plan)));
}

TEST(Jitter, RepeatsBySeed) {
  const Topology topology = make_star({.hosts = 12});
  const Demand demand = make_demand(topology, 12, 30);
  const Plan plan = two_tree_plan(topology, demand, 2);
  const auto first = run(topology, demand, plan, 50'000, 5);
  EXPECT_EQ(encode_result(first), encode_result(run(topology, demand, plan, 50'000, 5)));
  EXPECT_NE(first.makespan, run(topology, demand, plan, 50'000, 6).makespan);
  EXPECT_EQ(first.moved.nic, run(topology, demand, plan).moved.nic);
}

// A star's holder sends all blocks over one NIC that never rests: 10 seeds x 700 blocks of +-30 %,
// so that the mean has a standard deviation of 0.2 %.
TEST(Jitter, AStarTakesAsLongOnAverage) {
  const Topology topology = make_star({.hosts = 8});
  const Demand demand = make_demand(topology, 8, 100);
  const Plan plan = tree_plan(topology, demand, std::vector<std::uint32_t>(7, 0), 4);
  const double nominal = run(topology, demand, plan).makespan.seconds();
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    sum += run(topology, demand, plan, 300'000, seed).makespan.seconds();
  }
  EXPECT_NEAR(sum / 10 / nominal, 1, 0.01);
}

// Others keep half of every NIC: the same plan takes twice as long, its latencies aside.
TEST(OtherTraffic, HalfOfWhatLimitsTakesTwiceAsLong) {
  const Topology whole = make_star({.hosts = 12});
  std::vector<std::uint32_t> taken;
  for (const Link& link : whole.links()) {
    taken.push_back(link.kind == LinkKind::Fabric ? 500'000 : 0);
  }
  const Topology half = beside_other_traffic(whole, taken);
  const auto makespan = [](const Topology& topology) {
    const Demand demand = make_demand(topology, 12, 100);
    return run(topology, demand, two_tree_plan(topology, demand, 3)).makespan.seconds();
  };
  EXPECT_NEAR(makespan(half) / makespan(whole), 2, 0.01);
}

// Whatever the shares: no bin of any link carries more than was left of it. A flow counts evenly
// over the time it ran, so a bin may be half a percent above.
TEST(OtherTraffic, NoLinkCarriesMoreThanWasLeft) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const Topology whole = make_star({.hosts = 10});
    std::vector<std::uint32_t> taken;
    for (std::size_t i = 0; i < whole.links().size(); ++i) {
      taken.push_back(static_cast<std::uint32_t>(random() % 900'000));
    }
    const Topology left = beside_other_traffic(whole, taken);
    const Demand demand = make_demand(left, 10, 1'600);
    const auto result = run(left, demand, two_tree_plan(left, demand, 3));
    ASSERT_FALSE(result.failure);
    for (const ChannelUse& use : result.channels) {
      const std::size_t link = use.channel.link().index();
      const double share = 1 - static_cast<double>(taken[link]) / 1e6;
      const auto capacity = static_cast<double>(whole.links()[link].capacity.bytes_per_second());
      const double most =
          capacity * share * result.makespan.seconds() / static_cast<double>(use.bins.size());
      for (const Bytes bin : use.bins) {
        EXPECT_LE(static_cast<double>(bin.count()), most * 1.005) << left.channel_name(use.channel);
      }
    }
  }
}

}  // namespace
}  // namespace holdfast::sim::testing
