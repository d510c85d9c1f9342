#include "core/plan/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "tests/plan/plan_fixtures.hpp"

namespace holdfast {
namespace {

using ::testing::ElementsAre;

TEST(BlockSelection, CountsAndEnumerates) {
  // {first, step, end}: how many
  EXPECT_EQ((BlockSelection{0, 1, 5}).count(), 5U);
  EXPECT_EQ((BlockSelection{1, 2, 6}).count(), 3U);  // 1, 3, 5
  EXPECT_EQ((BlockSelection{1, 2, 5}).count(), 2U);  // 1, 3
  EXPECT_EQ((BlockSelection{4, 3, 5}).count(), 1U);
  EXPECT_EQ((BlockSelection{5, 1, 5}).count(), 0U);
  EXPECT_EQ((BlockSelection{6, 1, 5}).count(), 0U);
  EXPECT_EQ((BlockSelection{1, 2, 6}).at(2), 5U);
}

TEST(BlockSelection, HoldsItsGroundAtTheEndsOfTheRange) {
  constexpr std::uint32_t kMost = 0xffffffffU;
  EXPECT_EQ((BlockSelection{0, 0, 5}).count(), 0U);
  EXPECT_EQ((BlockSelection{0, kMost, 2}).count(), 1U);
  EXPECT_EQ((BlockSelection{0, 1, kMost}).count(), kMost);
  EXPECT_EQ((BlockSelection{0, kMost, kMost}).count(), 1U);
}

TEST(BlocksOfStripe, FollowTheClassOverItsSpans) {
  // The class's own order: 0 1 2 | 3 4 | 5
  // Block:                 2 3 4 | 8 9 | 20
  Demand demand;
  demand.classes.push_back(
      {{{BlockId(2U), 3}, {BlockId(8U), 2}, {BlockId(20U), 1}}, {WorkerId(0U)}, {WorkerId(1U)}});
  const auto blocks = [&](BlockSelection selection) {
    std::vector<std::uint32_t> ids;
    for (const BlockId id : blocks_of(demand, {ClassId(0U), selection, {}})) {
      ids.push_back(id.value());
    }
    return ids;
  };
  EXPECT_THAT(blocks({0, 1, 6}), ElementsAre(2, 3, 4, 8, 9, 20));
  EXPECT_THAT(blocks({0, 2, 6}), ElementsAre(2, 4, 9));
  EXPECT_THAT(blocks({1, 2, 6}), ElementsAre(3, 8, 20));
  EXPECT_THAT(blocks({2, 1, 4}), ElementsAre(4, 8));
  EXPECT_THAT(blocks({1, 4, 6}), ElementsAre(3, 20));
  EXPECT_THAT(blocks({5, 100, 6}), ElementsAre(20));
  EXPECT_THAT(blocks({3, 1, 3}), ElementsAre());
}

TEST(WindowFor, CoversARoundTripAndIsNeverOne) {
  // 50 GB/s moves a block of 50,000 bytes in 1 us.
  const Rate rate(50'000'000'000);
  const Bytes block(50'000);
  EXPECT_EQ(window_for(microseconds(0), rate, block), 2U);
  EXPECT_EQ(window_for(nanoseconds(1), rate, block), 2U);   // 1 + ceil(0.001)
  EXPECT_EQ(window_for(microseconds(1), rate, block), 2U);  // 1 + 1
  EXPECT_EQ(window_for(Time(1'000'001), rate, block), 3U);  // a picosecond more
  EXPECT_EQ(window_for(microseconds(10), rate, block), 11U);
  EXPECT_EQ(window_for(microseconds(4'094), rate, block), 4'095U);
  EXPECT_EQ(window_for(microseconds(4'095), rate, block), 4'096U);
  EXPECT_EQ(window_for(microseconds(4'096), rate, block), 4'096U);
  EXPECT_EQ(window_for(Time::never(), Rate(~std::uint64_t{0}), Bytes(1)), 4'096U);
  EXPECT_EQ(window_for(Time::never(), rate, Bytes(0)), 2U);
  EXPECT_EQ(window_for(microseconds(-1), rate, block), 2U);
}

TEST(PlanHash, DependsOnEveryField) {
  const fixtures::Cluster cluster = fixtures::cluster(2, 2);
  const Router router(cluster.topology);
  const Demand demand = fixtures::broadcast_demand(cluster, 4);
  const Plan good = fixtures::chain_plan(router, demand, 2);
  const std::vector<std::function<void(Plan&)>> changes = {
      [](Plan& p) { ++p.format; },
      [](Plan& p) { ++p.topology.high; },
      [](Plan& p) { ++p.topology.low; },
      [](Plan& p) { ++p.demand.high; },
      [](Plan& p) { ++p.demand.low; },
      [](Plan& p) { p.stripes.pop_back(); },
      [](Plan& p) { p.stripes[0].block_class = ClassId(1U); },
      [](Plan& p) { ++p.stripes[0].blocks.first; },
      [](Plan& p) { ++p.stripes[0].blocks.step; },
      [](Plan& p) { ++p.stripes[0].blocks.end; },
      [](Plan& p) { p.stripes[0].edges.pop_back(); },
      [](Plan& p) { p.stripes[0].edges[1].child = WorkerId(7U); },
      [](Plan& p) { p.stripes[0].edges[1].parent = WorkerId(7U); },
      [](Plan& p) { p.stripes[0].edges[1].alternate = WorkerId(); },
      [](Plan& p) { p.stripes[0].edges[1].path.source_port = NodeId(0U); },
      [](Plan& p) { p.stripes[0].edges[1].path.destination_port = NodeId(0U); },
      [](Plan& p) { ++p.stripes[0].edges[1].path.stream; },
      [](Plan& p) { ++p.stripes[0].edges[1].window; },
  };
  EXPECT_EQ(hash_of(good), hash_of(Plan(good)));
  std::set<Hash128> hashes = {hash_of(good)};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "change " << i);
    Plan plan = good;
    changes[i](plan);
    EXPECT_TRUE(hashes.insert(hash_of(plan)).second);
  }
}

}  // namespace
}  // namespace holdfast
